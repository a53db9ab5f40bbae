package secretscan_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"satchel/gitstore/secretscan"
)

// What may be a password is warned of; what may be committed is another matter.
func TestSuspects(t *testing.T) {
	s, err := secretscan.New(secretscan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text, want string
	}{
		{"a variable", "# Deploy\nDB_PASSWORD=Tr0ub4dor-3xKq9Zp\n", "Tr0ub4dor-3xKq9Zp"},
		{"YAML", "db:\n  password: correcthorse99Zx\n", "correcthorse99Zx"},
		{"quotes", `{"api_key": "9f8Qz7Lm2Rk4"}`, "9f8Qz7Lm2Rk4"},
		{"in Markdown", "- **Password:** `h7Gq-92kLmZ`.", "h7Gq-92kLmZ"},
		{"the end of a sentence", "The password: h7Gq-92kLmZ.", "h7Gq-92kLmZ"},
		{"in Go", `secret := "h7Gq92kLmZ"`, "h7Gq92kLmZ"},
		{"a placeholder", "DB_PASSWORD=your-Passw0rd-Here1\ntoken: <Tok3n-9fQz7>\npassword: ${DB_P4ss9Q}", ""},
		{"an example", `password = "Example-9Qz7Lm"`, ""},
		{"code", "token = decodeV2(Base64Url)\nconst secret = process.env.S3CRET_9Qz\nsecret: config.get2Q9z('x')", ""},
		{"a word", "password: correcthorsebattery\ntoken: string2", ""},
		{"prose", "The token: it expires after 30 days.", ""},
		{"a path", "secret: /run/secrets/Db9Qz7Lm", ""},
		{"nothing", "", ""},
		{"beside what is no text", "caf\xe9\nDB_PASSWORD=Tr0ub4dor-3xKq9Zp\n", "Tr0ub4dor-3xKq9Zp"},
		{"behind much of the same line", `{"pad":"` + strings.Repeat("lorem ipsum ", 200) + `","password":"h7Gq-92kLmZ"}`, "h7Gq-92kLmZ"},
		{"lines that end with CR", "a line\rPASSWORD=h7Gq-92kLmZ\rand more\r", "h7Gq-92kLmZ"},
		{"a block of YAML's", "password: >-\n  h7Gq-92kLmZ\n", "h7Gq-92kLmZ"},
		{"behind another", "token=abc password=h7Gq-92kLmZ", "h7Gq-92kLmZ"},
		{"in a query", "https://db.internal/?user=ada&password=h7Gq-92kLmZ", "h7Gq-92kLmZ"},
		{"in short", "DB_PWD=h7Gq-92kLmZ\npasswd: \"k8Gq-92kLmZ\"", "h7Gq-92kLmZ k8Gq-92kLmZ"},
		{"a URL", "DATABASE_URL=postgres://ada:h7Gq-92kLmZ@db.internal/x", "h7Gq-92kLmZ"},
		{"a URL without a name", "redis://:h7Gq-92kLmZ@cache", "h7Gq-92kLmZ"},
		{"a URL whose password has an @", "amqps://ada:h7Gq@92kLmZ@mq", "h7Gq@92kLmZ"},
		{"placeholders in a URL", "https://user:password@a postgres://u:${DB_P4ss9Q}@b mysql://ada:<h7Gq-92kLmZ>@c ftp://ada:your-Passw0rd1@d", ""},
		{"a URL without a password", "http://localhost:3000/@h7Gq-92kLmZ https://h7Gq-92kLmZ@a https://a:8080?mail=b9Qz-7Lm2@c x:y://", ""},
		{"no text", "password: h7Gq-92kLmZ\xff\xfe", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range s.Suspects("deploy.md", []byte(c.text)) {
				got = append(got, c.text[f.Start:f.End])
				if f.Rule != secretscan.RuleAssigned || f.Fingerprint == "" || strings.Contains(f.Description, c.want) {
					t.Errorf("%+v", f)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
			if all := s.Scan("deploy.md", []byte(c.text)); len(all) != 0 {
				t.Errorf("a commit of it would be refused: %+v", all)
			}
		})
	}
	known := "token: ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2\n"
	if all := s.Suspects("a.md", []byte(known)); len(all) != 1 || all[0].Rule == secretscan.RuleAssigned {
		t.Errorf("a key of a known format: %+v", all)
	}
}

// Attack: a password stands where a look would take it for no text, or for one line that
// is too long, and the file counts as one that was looked at.
func TestAttackSuspectsInOtherTexts(t *testing.T) {
	s, err := secretscan.New(secretscan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const text = "# Caf\u00e9\r\nDB_PASSWORD=h7Gq-92kLmZ\r\n"
	wide := func(mark, order string) string {
		var b strings.Builder
		b.WriteString(mark)
		for _, c := range text {
			if order == "big" {
				b.Write([]byte{byte(c >> 8), byte(c)})
			} else {
				b.Write([]byte{byte(c), byte(c >> 8)})
			}
		}
		return b.String()
	}
	for _, c := range []struct {
		name, text string
		line       int
		in         int // where the value begins
	}{
		{"UTF-16 as PowerShell writes it", wide("\xff\xfe", "little"), 2, 2 + 2*20},
		{"UTF-16, big end first", wide("\xfe\xff", "big"), 2, 2 + 2*20},
		{"UTF-16 without a mark", wide("", "little"), 2, 2 * 20},
		{"a letter of another alphabet in UTF-16", strings.ReplaceAll(wide("\xff\xfe", "little"), "G\x00", "\x13\x04"), 2, 2 + 2*20},
		{"a mark of UTF-16 before other text", "\xff\xfe" + text, 2, 2 + 21},
		{"lines that end with CR", strings.Repeat("a line of prose\r", 200) + "token=h7Gq-92kLmZ\r", 201, 16*200 + 6},
		{"the end of a long line", "x\n" + strings.Repeat("a long line of prose: ", 200_000) + "token=h7Gq-92kLmZ", 2, 2 + 22*200_000 + 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := s.Suspects("app.env", []byte(c.text))
			if len(found) != 1 || found[0].Line != c.line || found[0].Start != c.in || found[0].End > len(c.text) || found[0].Column < 1 {
				t.Errorf("%+v", found)
			}
		})
	}
}

// Attack: a password behind more decoys than are told of, on one line, so that they
// look like one place.
func TestAttackDecoysBeforeAPassword(t *testing.T) {
	s, err := secretscan.New(secretscan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"few": 10, "many": 3000} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "token=h7Gq-92k%04dZ ", i)
		}
		b.WriteString("\nDB_PASSWORD=Tr0ub4dor-3xKq9Zp\n")
		found, err := s.SuspectsIn(t.Context(), "a.env", []byte(b.String()))
		if all := len(found) == n+1; all != (err == nil) || err != nil && !errors.Is(err, secretscan.ErrMore) {
			t.Errorf("%s: %d of %d are found, and the error is %v", name, len(found), n+1, err)
		}
	}
}

// Attack: names in front of many signs that end no value and belong to none. Where each
// name looks at all of them, this takes minutes.
func TestAttackNamesBeforeALongTail(t *testing.T) {
	s, err := secretscan.New(secretscan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("token=", 10_000) + strings.Repeat(".", 8<<20)
	if found, err := s.SuspectsIn(t.Context(), "a.env", []byte(text)); len(found) > 0 || err != nil {
		t.Errorf("%d findings, %v", len(found), err)
	}
}
