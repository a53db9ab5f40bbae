package secretscan

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// key is a key in one of the formats that remotes refuse.
type key struct{ rule, text string }

// realKeys returns a key of every kind, in the real formats.
func realKeys(r *rand.Rand) []key {
	uuid := func() string {
		return strings.Join([]string{from(r, hexes, 8), from(r, hexes, 4), from(r, hexes, 4), from(r, hexes, 4), from(r, hexes, 12)}, "-")
	}
	jwt := func() string {
		return join("eyJ", from(r, urlSafe, 60), ".eyJ", from(r, urlSafe, 300), ".", from(r, urlSafe, 86))
	}
	return []key{
		{"github-pat", join("gh", "p_", from(r, base62, 36))},
		{"github-oauth", join("gh", "o_", from(r, base62, 36))},
		{"github-app-token", join("gh", "u_", from(r, base62, 36))},
		{"github-app-token", join("gh", "s_", from(r, base62, 36))},
		{"github-app-token", join("gh", "s_1234567_", jwt())},
		{"github-refresh-token", join("gh", "r_", from(r, base62, 36))},
		{"github-fine-grained-pat", join("github", "_pat_", from(r, base62, 22), "_", from(r, base62, 59))},
		{"gitlab-pat", join("glp", "at-", from(r, urlSafe, 20))},
		{"gitlab-pat-routable", join("glp", "at-", from(r, urlSafe, 27), ".01", from(r, lowers+digits, 7))},
		{"gitlab-runner-authentication-token", join("gl", "rt-", from(r, urlSafe, 20))},
		{"gitlab-deploy-token", join("gl", "dt-", from(r, urlSafe, 20))},
		{"aws-access-token", join("AK", "IA", from(r, base32, 16))},
		{"aws-access-token", join("AS", "IA", from(r, base32, 16))},
		{"aws-secret-access-key", join("aws_secret_access", "_key = ", from(r, base64s, 40))},
		{"aws-secret-access-key", join(`"Secret`, `AccessKey": "`, from(r, base64s, 40), `"`)},
		{"aws-amazon-bedrock-api-key-long-lived", join("AB", "SK", from(r, base64s, 128))},
		{"azure-storage-key", join("DefaultEndpointsProtocol=https;AccountName=files;Account", "Key=", from(r, base64s, 86), "==")},
		{"azure-ad-client-secret", join(from(r, base62, 3), "8", "Q~", from(r, base62, 34))},
		{"azure-key-84", join(from(r, base62, 52), "JQ", "QJ99", from(r, base62, 5), "A", from(r, base62, 20))},
		{"azure-key-64", join(from(r, base64s, 76), "+A", "St", from(r, base64s, 5), "A==")},
		{"azure-search-key", join(from(r, base62, 42), "Az", "SeA", from(r, base62, 5))},
		{"gcp-api-key", join("AI", "za", from(r, urlSafe, 34), "k")},
		{"google-oauth-client-secret", join("GOC", "SPX-", from(r, urlSafe, 28))},
		{"google-oauth-access-token", join("ya", "29.a0", from(r, urlSafe, 160))},
		{"google-oauth-refresh-token", join("1/", "/0", from(r, urlSafe, 60))},
		{"private-key", join(`{"type": "service_account", "private_key": "`, strings.ReplaceAll(pem(r, "", 25), "\n", `\n`), `\n"}`)},
		{"private-key", pem(r, "RSA ", 25)},
		{"private-key", pem(r, "EC ", 3)},
		{"private-key", pem(r, "OPENSSH ", 6)},
		{"private-key", pem(r, "", 1)},
		{"private-key", join("    ", strings.ReplaceAll(pem(r, "", 25), "\n", "\n    "))},
		{"private-key", strings.ReplaceAll(pem(r, "", 25), "\n", "\r\n")},
		{"private-key", join("\"", strings.ReplaceAll(pem(r, "", 25), "\n", "\\n\" +\n  \""), "\"")},
		{"private-key", strings.ReplaceAll(pem(r, "", 25), "\n", "\n// ")},
		{"private-key", strings.Replace(pem(r, "RSA ", 25), "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n\n", 1)},
		{"private-key", join("-----BEGIN PGP ", "PRIVATE KEY BLOCK-----\nVersion: GnuPG v1\nComment: a note: here\n\n", from(r, base64s, 64), "\n", from(r, base64s, 64), "\n=", from(r, base64s, 4), "\n-----END PGP ", "PRIVATE KEY BLOCK-----")},
		{"slack-bot-token", join("xo", "xb-", from(r, "123456789", 12), "-", from(r, "123456789", 13), "-", from(r, base62, 24))},
		{"slack-user-token", join("xo", "xp-", from(r, "123456789", 12), "-", from(r, "123456789", 12), "-", from(r, "123456789", 12), "-", from(r, hexes, 32))},
		{"slack-app-token", join("xa", "pp-1-A0", from(r, uppers+digits, 9), "-", from(r, digits, 13), "-", from(r, hexes, 64))},
		{"slack-webhook-url", join("https://hooks.sl", "ack.com/services/T0", from(r, uppers+digits, 8), "/B0", from(r, uppers+digits, 8), "/", from(r, base62, 24))},
		{"stripe-access-token", join("sk", "_live_", from(r, base62, 99))},
		{"stripe-access-token", join("sk", "_test_", from(r, base62, 24))},
		{"stripe-access-token", join("rk", "_live_", from(r, base62, 99))},
		{"openai-api-key", join("sk", "-", from(r, base62, 20), "T3Blb", "kFJ", from(r, base62, 20))},
		{"openai-api-key", join("sk", "-proj-", from(r, urlSafe, 74), "T3Blb", "kFJ", from(r, urlSafe, 74))},
		{"openai-api-key", join("sk", "-svcacct-", from(r, urlSafe, 58), "T3Blb", "kFJ", from(r, urlSafe, 58))},
		{"anthropic-api-key", join("sk", "-ant-api03-", from(r, urlSafe, 93), "AA")},
		{"anthropic-api-key", join("sk", "-ant-admin01-", from(r, urlSafe, 93), "AA")},
		{"anthropic-api-key", join("sk", "-ant-oat01-", from(r, urlSafe, 93), "AA")},
		{"openrouter-api-key", join("sk", "-or-v1-", from(r, hexes, 64))},
		{"groq-api-key", join("gs", "k_", from(r, base62, 52))},
		{"xai-api-key", join("xa", "i-", from(r, base62, 80))},
		{"replicate-api-token", join("r", "8_", from(r, base62, 37))},
		{"perplexity-api-key", join("pp", "lx-", from(r, base62, 48))},
		{"huggingface-access-token", join("h", "f_", from(r, uppers+lowers, 34))},
		{"npm-access-token", join("np", "m_", from(r, base62, 36))},
		{"pypi-upload-token", join("py", "pi-AgEIcHlwaS5vcmc", from(r, urlSafe, 150))},
		{"rubygems-api-token", join("ruby", "gems_", from(r, hexes, 48))},
		{"nuget-api-key", join("oy", "2", from(r, lowers+"234567", 43))},
		{"crates-api-token", join("ci", "o", from(r, base62, 32))},
		{"docker-access-token", join("dckr", "_pat_", from(r, urlSafe, 27))},
		{"sendgrid-api-token", join("S", "G.", from(r, urlSafe, 22), ".", from(r, urlSafe, 42), "k")},
		{"sendinblue-api-token", join("xkey", "sib-", from(r, hexes, 64), "-", from(r, base62, 16))},
		{"twilio-api-key", join("S", "K", from(r, hexes, 32))},
		{"twilio-account-sid", join("A", "C", from(r, hexes, 32))},
		{"mailgun-api-key", join("ke", "y-", from(r, hexes, 32))},
		{"mailchimp-api-key", join(from(r, hexes, 32), "-u", "s12")},
		{"digitalocean-pat", join("dop", "_v1_", from(r, hexes, 64))},
		{"digitalocean-access-token", join("doo", "_v1_", from(r, hexes, 64))},
		{"discord-bot-token", join("M", "Tk4", from(r, base62, 22), ".G", from(r, urlSafe, 5), ".", from(r, urlSafe, 37), "k")},
		{"discord-webhook-url", join("https://disc", "ord.com/api/web", "hooks/1", from(r, digits, 18), "/", from(r, urlSafe, 67), "k")},
		{"discord-webhook-url", join("https://canary.disc", "ordapp.com/api/v10/web", "hooks/1", from(r, digits, 17), "/", from(r, urlSafe, 67), "k")},
		{"telegram-bot-token", join("7", from(r, digits, 9), ":A", "A", from(r, urlSafe, 32), "k")},
		{"telegram-bot-token", join("https://api.telegram.org/bot", from(r, digits, 8), ":A", "A", from(r, urlSafe, 32), "k/getMe")},
		{"webhook-signing-secret", join("wh", "sec_", from(r, base62, 32))},
		{"webhook-signing-secret", join("wh", "sec_", from(r, base64s, 42), "8=")},
		{"json-web-token", webToken(r, `{"alg":"HS256","typ":"JWT"}`, `{"sub":"u-81","iat":1771234567}`, 43)},
		{"json-web-token", webToken(r, `{"alg":"RS256","kid":"`+from(r, hexes, 40)+`"}`, `{"iss":"https://id.test","exp":1799234567,"scope":"`+from(r, lowers, 900)+`"}`, 342)},
		{"shopify-access-token", join("shp", "at_", from(r, hexes, 32))},
		{"square-access-token", join("EA", "AA", from(r, urlSafe, 60))},
		{"databricks-api-token", join("da", "pi", from(r, hexes, 32))},
		{"vault-service-token", join("hv", "s.CAES", from(r, urlSafe, 90))},
		{"terraform-token", join(from(r, base62, 14), ".atlas", "v1.", from(r, base62, 67))},
		{"doppler-token", join("dp", ".pt.", from(r, base62, 43))},
		{"linear-api-key", join("lin", "_api_", from(r, base62, 40))},
		{"notion-api-token", join("nt", "n_", from(r, digits, 11), from(r, base62, 35))},
		{"notion-integration-token", join("sec", "ret_", from(r, base62, 43))},
		{"figma-token", join("fi", "gd_", from(r, urlSafe, 39), "k")},
		{"supabase-access-token", join("sb", "p_", from(r, hexes, 40))},
		{"supabase-secret-key", join("sb_", "secret_", from(r, base62, 22), "_", from(r, base62, 8))},
		{"postman-api-token", join("PM", "AK-", from(r, hexes, 24), "-", from(r, hexes, 34))},
		{"pulumi-api-token", join("pu", "l-", from(r, hexes, 40))},
		{"grafana-service-account-token", join("gl", "sa_", from(r, base62, 32), "_", from(r, hexes, 8))},
		{"sentry-user-token", join("sn", "tryu_", from(r, hexes, 64))},
		{"atlassian-api-token", join("ATA", "TT3xFfGF0", from(r, urlSafe, 180), "=", from(r, uppers+digits, 8))},
		{"hubspot-private-app-token", join("pa", "t-na1-", uuid())},
		{"teams-webhook-url", join("https://x.webhook.off", "ice.com/webhookb2/", uuid(), "@", uuid(), "/IncomingWebhook/", from(r, hexes, 32), "/", uuid())},
		{"1password-service-account-token", join("op", "s_eyJ", from(r, base62, 300))},
		{"age-secret-key", join("AGE-", "SECRET-KEY-1", from(r, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58))},
		{"satchel-api-key", join("sat", "chel_", from(r, urlSafe, 49))},
		{"mapbox-secret-token", join("sk", ".eyJ", from(r, base62, 80), ".", from(r, base62, 22))},
		{"planetscale-password", join("psc", "ale_pw_", from(r, base62, 43))},
		{"dropbox-access-token", join("sl", ".u.A", from(r, urlSafe, 200))},
		{"new-relic-key", join("NR", "AK-", from(r, uppers+digits, 27))},
		{"circleci-token", join("CCI", "PAT_", from(r, base62, 22), "_", from(r, hexes, 40))},
	}
}

// webToken returns a JSON Web Token with a signature of the given number of digits.
func webToken(r *rand.Rand, header, claims string, sig int) string {
	b := base64.RawURLEncoding
	return join(b.EncodeToString([]byte(header)), ".", b.EncodeToString([]byte(claims)), ".", from(r, urlSafe, sig-1), "k")
}

// surroundings are the ways in which people and AIs write a key.
var surroundings = []string{
	"%s", "%s\n", "The key is %s.", "use `%s` here", "(%s)", "<%s>", "[%s](https://example.org)", "- **Token:** %s, valid until May\n",
	"export TOKEN=%s\n", `{"token": "%s"}`, "token: '%s'\n", "| prod | %s | yes |\n", "https://x:%s@host/repo.git", "curl -H \"Authorization: Bearer %s\" https://api.test\r\n",
	`{"text": "the key:\n%s\nis new"}`, `{"html": "\u0022%s\u0022"}`, "https://example.org/?token%%3D%s%%26next=1", "a\t%s\tb", "&quot;%s&quot;", "<td>%s</td>", "key:%s;", "key=%s,next",
	"日本語%s日本語", "\xff\xfe\x00%s\x00\xff",
}

func TestKeysAreFoundHoweverTheyAreWritten(t *testing.T) {
	s := newScanner(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		for _, k := range realKeys(r) {
			for _, form := range surroundings {
				content := []byte("# Notes\n\nsome prose\n" + fmt.Sprintf(form, k.text) + "\nmore prose\n")
				found := s.Scan("notes.md", content)
				check(t, content, found)
				if !slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == k.rule && f.Line >= 4 }) {
					t.Errorf("no %s in %q: %v", k.rule, content, found)
				}
			}
		}
	}
}

func TestARedactedKeyIsGone(t *testing.T) {
	s := newScanner(t)
	r := rand.New(rand.NewPCG(3, 4))
	for _, k := range realKeys(r) {
		content := []byte("before " + k.text + " after")
		found := s.Scan("x", content)
		out := string(Redact(content, found))
		if len(s.Scan("x", []byte(out))) > 0 || !strings.HasPrefix(out, "before ") || !strings.HasSuffix(out, " after") {
			t.Errorf("%s: %q became %q", k.rule, content, out)
		}
		for _, f := range found {
			for at := f.Start; at+16 <= f.End; at += 8 {
				if strings.Contains(out, string(content[at:at+16])) {
					t.Errorf("%s: a part of %q is left in %q", k.rule, content, out)
				}
			}
		}
	}
}

func TestWhatIsNoSecretPasses(t *testing.T) {
	s := newScanner(t)
	r := rand.New(rand.NewPCG(5, 6))
	picture := make([]byte, 200_000)
	for i := range picture {
		if i%7 > 2 { // with runs of zeros, as in real pictures
			picture[i] = byte(r.Uint32())
		}
	}
	wrapped := func(s string, n int) string {
		var b strings.Builder
		for len(s) > n {
			b.WriteString(s[:n] + "\n")
			s = s[n:]
		}
		return b.String() + s
	}
	encoded := base64.StdEncoding.EncodeToString(picture)
	var hashes, lock, minified strings.Builder
	for range 3000 {
		fmt.Fprintf(&hashes, "%s %s\n", from(r, hexes, 40), from(r, hexes, 64))
		fmt.Fprintf(&lock, "    \"integrity\": \"sha512-%s==\",\n    h1:%s=\n", from(r, base64s, 86), from(r, base64s, 43))
		fmt.Fprintf(&minified, "function %s(t,e){return s.%s(t.%s,e)}var %s=%s,", from(r, lowers, 1), from(r, lowers, 24), from(r, lowers, 6), from(r, lowers, 2), from(r, digits, 8))
	}
	uuids := ""
	for range 2000 {
		uuids += strings.Join([]string{from(r, hexes, 8), from(r, hexes, 4), from(r, hexes, 4), from(r, hexes, 4), from(r, hexes, 12)}, "-") + "\n"
	}
	for name, text := range map[string]string{
		"AWS's example key":               join("AK", "IAIOSFODNN7EXAMPLE"),
		"AWS's example secret":            join("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/", "bPxRfiCYEXAMPLEKEY"),
		"a key of x":                      join("gh", "p_", strings.Repeat("x", 36), " sk", "_live_", strings.Repeat("x", 24), " gl", "pat-", strings.Repeat("x", 20)),
		"a key of stars":                  join("sk", "-ant-api03-", strings.Repeat("*", 95)),
		"a key with dots":                 join("sk", "-proj-... and gh", "p_... and xo", "xb-...-..."),
		"a counted key":                   join("gh", "p_", "123456789012345678901234567890123456"),
		"your key here":                   join("sk", "_test_YOUR_SECRET_KEY_HERE and sk", "_test_yourSecretKeyGoesHere1234"),
		"names of variables":              "GITHUB_TOKEN, AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY}, npm_config_registry, npm_package_dependencies_typescript_version",
		"a secret of the CI":              "aws-secret-access-key: ${{ secrets.AWS_SECRET_ACCESS_KEY }}",
		"a path in place of a secret":     "aws_secret_access_key = /home/jovyan/Workspace/quick/brown/foxes",
		"prose on a secret":               "The secret access key is shown once. A secret access key: keep it.",
		"a placeholder for a private key": join("-----BEGIN ", "PRIVATE KEY-----\n<your key here>\n-----END ", "PRIVATE KEY-----"),
		"an elided private key":           join("-----BEGIN RSA ", "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA...\n...\n-----END RSA ", "PRIVATE KEY-----"),
		"two placeholders, far apart":     join("-----BEGIN ", "PRIVATE KEY-----\n...\n", strings.Repeat("A paragraph about keys and what they are for.\n", 50), "-----END ", "PRIVATE KEY-----"),
		"a placeholder before links":      join("-----BEGIN ", "PRIVATE KEY-----\n...\n", strings.Repeat("See github.com/withastro/docs/blob/main/src/content/docs/en/guides/Deploy2Cloud.mdx for more.\n", 9), "-----END ", "PRIVATE KEY-----"),
		"a first line in a sentence":      join("A key begins with `-----BEGIN ", "PRIVATE KEY-----` and goes on as MIIEvQIBADANBgkqhkiG9w0BAQEFAASC does."),
		"a public key":                    join("-----BEGIN PUBLIC KEY-----\n", wrapped(from(r, base64s, 360), 64), "\n-----END PUBLIC KEY-----\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA", from(r, base64s, 43), " ada@example.org"),
		"a certificate":                   join("-----BEGIN CERTIFICATE-----\n", wrapped(from(r, base64s, 1200), 64), "\n-----END CERTIFICATE-----"),
		"git hashes":                      hashes.String(),
		"UUIDs":                           uuids,
		"a lock file":                     lock.String(),
		"minified JavaScript":             minified.String(),
		"a picture in base64":             "![logo](data:image/png;base64," + encoded + ")",
		"a picture in lines of base64":    wrapped(encoded, 76),
		"a picture":                       string(picture),
		"a key's form in base64":          join(from(r, base64s, 200), "/ci", "o", from(r, base62, 32), "/", from(r, base64s, 200)),
		"the same in lines":               join(from(r, base64s, 76), "\n", from(r, base64s, 75), "\nci", "o", from(r, base62, 32), "+", from(r, base64s, 40)),
		"a JSON Web Token":                join("ey", "JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.", from(r, urlSafe, 43)),
		"a token that nobody issued":      webToken(r, `{"alg":"HS256"}`, `{"foo":"bar"}`, 43),
		"a token without a signature":     join(webToken(r, `{"alg":"HS256"}`, `{"sub":"u-81","iat":1771234567}`, 20), " and ", strings.TrimSuffix(webToken(r, `{"alg":"none"}`, `{"iat":1771234567}`, 1), "k")),
		"a token's header without alg":    webToken(r, `{"typ":"JWT"}`, `{"sub":"u-81","iat":1771234567}`, 43),
		"a token whose claims are none":   webToken(r, `{"alg":"HS256"}`, `{"iat":1771234567`, 43),
		"Supabase's key for everyone":     webToken(r, `{"alg":"HS256","typ":"JWT"}`, `{"iss":"supabase","ref":"abc","role":"anon","iat":1771234567}`, 43),
		"an example of a webhook":         "https://discord.com/api/webhooks/123456789012345678/abcdef and https://discord.com/api/webhooks/ID/TOKEN",
		"Telegram's example":              join("110201543:A", "AHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw, 123456:AB", "C-DEF1234ghIkl-zyx57W2v1u123ew11"),
		"times and names":                 "2026-01-02 12345678:AA, 10203040:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99",
		"published webhook secrets":       join("wh", "sec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw and wh", "sec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"),
		"a placeholder for one":           join("wh", "sec_... wh", "sec_your_webhook_signing_secret wh", "sec_", strings.Repeat("x", 32)),
		"a page's etag and a version":     "etag: \"33a64df551425fcc55e4d42a148795d9f25f89d4\"; v1.0-beta; s3://bucket/AKIA/x",
		"words that begin like keys":      "AKIA, ASIA and the AIza prefix; ghp_ and gho_ begin tokens; sk- and SG. too; hf_hub_download(repo_id); pat-na1; desk-proj-notes; 1//0 divided",
		"Azurite's published key":         join("AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq", "/K1SZFPTOtr/KBHBeksoGMGw=="),
		"Stripe's published test key":     join("sk", "_test_4eC39HqLyjWD", "arjtT1zdp7dc"),
		"nothing":                         "",
	} {
		content := []byte(text)
		if found := s.Scan("notes.md", content); len(found) > 0 {
			t.Errorf("%s: %v %q", name, found, secrets(content, found))
		}
	}
}

func TestEveryRuleCompilesAndHasATextInEachMatch(t *testing.T) {
	s := newScanner(t)
	s.Scan("", nil)
	for i := range s.matcher.rules {
		r := &s.matcher.rules[i]
		r.once.Do(r.compile)
		if r.window < 16 || len(r.lits) == 0 || r.id == "" || r.about == "" {
			t.Errorf("%+v", r.rule)
		}
		for _, lit := range r.lits {
			if len(lit) < 2 || r.fold && strings.ToLower(lit) != lit {
				t.Errorf("%s: %q", r.id, lit)
			}
		}
	}
}
