package secretscan

//go:generate go run generate.go

// rule describes one format of secrets.
type rule struct {
	id    string
	about string   // for people, without an article: "GitHub personal access token"
	lits  []string // every match contains one of these
	at    int      // offset of lits in a match, in bytes
	run   int      // how many letters, digits or _ follow lits in every match, for short lits
	fold  bool     // lits are in lower case and match in any case
	// expr matches at the beginning. The secret is the first group that matched, or the
	// match if expr has no groups.
	expr    string
	bound   bool    // no letter, digit or _ precedes a match
	ends    bool    // no letter, digit or _ follows a match
	entropy float64 // a secret has more bits per byte than this
	long    bool    // a secret has many lines, so entropy and placeholders are not checked
	// refine, if set, returns the end of the secret at the beginning of the content, or 0
	// to reject it.
	refine func(content []byte) (end int)
}

// own returns rules for formats that remotes refuse and for which gitleaks has no rule,
// or one that matches too much or too little. The rules follow the providers'
// documentation, GitHub's list of supported secret scanning patterns and, for Azure's keys
// that contain a signature, Microsoft's list.
func own() []rule {
	const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	return []rule{
		{id: "private-key", about: "private key", lits: []string{"-----BEGIN "}, expr: `-----BEGIN[ A-Z0-9_-]{1,40}PRIVATE KEY(?: BLOCK)?-----`, long: true, refine: privateKey},

		{id: "github-app-token", about: "GitHub App token", lits: []string{"ghs_"}, expr: `ghs_[0-9A-Za-z][0-9A-Za-z._-]{34,1000}[0-9A-Za-z_-]`, entropy: 3},
		{id: "github-app-token", about: "GitHub App user token", lits: []string{"ghu_"}, expr: `ghu_[0-9A-Za-z]{36,251}`, entropy: 3},
		{id: "satchel-api-key", about: "Satchel API key", lits: []string{"satchel_"}, expr: `satchel_[0-9A-Za-z_-]{49}`, bound: true, ends: true, entropy: 4},

		{id: "aws-access-token", about: "AWS access key ID", lits: []string{"AKIA", "ASIA", "ABIA", "ACCA"}, expr: `(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}`, bound: true, ends: true, entropy: 3},
		{id: "aws-secret-access-key", about: "AWS secret access key", fold: true, lits: []string{"secret_access_key", "secretaccesskey", "secret-access-key", "secret access key"},
			expr: `(?i:secret.?access.?key)[\x60'"*\\]{0,4}[ \t]{0,20}(?:=>|:=|=|:|\|)?[ \t]{0,20}[\x60'"\\]{0,3}([A-Za-z0-9/+]{40})`, ends: true, entropy: 4, refine: awsSecret},
		{id: "aws-bedrock-api-key", about: "AWS Bedrock API key", lits: []string{"bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t"}, expr: `bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t[A-Za-z0-9+/=%]{32,}`, entropy: 4},
		{id: "azure-storage-key", about: "Azure storage account key", lits: []string{"AccountKey="}, expr: `AccountKey=([A-Za-z0-9+/]{86}==)`, entropy: 4},
		{id: "azure-ad-client-secret", about: "Azure client secret", lits: []string{"Q~"}, at: 4, expr: `[a-zA-Z0-9_~.]{3}\dQ~[a-zA-Z0-9_~.-]{31,34}`, bound: true, ends: true, entropy: 3.5},
		{id: "azure-key-84", about: "Azure key", lits: []string{"JQQJ99"}, at: 52, expr: `[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{5}A[A-Za-z0-9]{20}`, bound: true, ends: true, entropy: 4},
		{id: "azure-key-64", about: "Azure key", lits: []string{"APIM", "ACDb", "+ABa", "+AMC", "+ASt"}, at: 76, expr: `[A-Za-z0-9+/]{76}(?:APIM|ACDb|\+ABa|\+AMC|\+ASt)[A-Za-z0-9+/]{5}[AQgw]==`, entropy: 4},
		{id: "azure-key-32", about: "Azure key", lits: []string{"AIoT", "+ASb", "+AEh", "+ARm"}, at: 33, expr: `[A-Za-z0-9+/]{33}(?:AIoT|\+ASb|\+AEh|\+ARm)[A-P][A-Za-z0-9+/]{5}=`, entropy: 4},
		{id: "azure-key-32", about: "Azure Redis key", lits: []string{"AzCa"}, at: 33, expr: `[A-Za-z0-9]{33}AzCa[A-P][A-Za-z0-9]{5}=`, bound: true, entropy: 4},
		{id: "azure-search-key", about: "Azure search key", lits: []string{"AzSe"}, at: 42, expr: `[A-Za-z0-9]{42}AzSe[A-D][A-Za-z0-9]{5}`, bound: true, ends: true, entropy: 4},
		{id: "azure-function-key", about: "Azure function key", lits: []string{"AzFu"}, at: 44, expr: `[A-Za-z0-9_-]{44}AzFu[A-Za-z0-9_-]{5}[AQgw]==`, bound: true, entropy: 4},
		{id: "azure-registry-key", about: "Azure container registry key", lits: []string{"+ACR"}, at: 42, expr: `[A-Za-z0-9+/]{42}\+ACR[A-D][A-Za-z0-9+/]{5}`, ends: true, entropy: 4},

		{id: "gcp-api-key", about: "Google API key", lits: []string{"AIza"}, expr: `AIza[\w-]{35}`, bound: true, ends: true, entropy: 4},
		{id: "google-oauth-client-secret", about: "Google OAuth client secret", lits: []string{"GOCSPX-"}, expr: `GOCSPX-[A-Za-z0-9_-]{28}`, ends: true, entropy: 3.5},
		{id: "google-oauth-access-token", about: "Google OAuth access token", lits: []string{"ya29."}, expr: `ya29\.[A-Za-z0-9_-]{40,1000}`, bound: true, entropy: 4},
		{id: "google-oauth-refresh-token", about: "Google OAuth refresh token", lits: []string{"1//0"}, expr: `1//0[A-Za-z0-9_-]{40,512}`, bound: true, entropy: 4},
		{id: "google-storage-key-id", about: "Google Cloud Storage access key ID", lits: []string{"GOOG1E"}, expr: `GOOG1E[A-Z0-9]{55}`, bound: true, ends: true, entropy: 4},

		{id: "openai-api-key", about: "OpenAI API key", lits: []string{"sk-proj-", "sk-svcacct-", "sk-admin-"}, expr: `sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,120}T3BlbkFJ[A-Za-z0-9_-]{20,120}`, bound: true, entropy: 4},
		{id: "openai-api-key", about: "OpenAI API key", lits: []string{"T3BlbkFJ"}, at: 23, expr: `sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}`, bound: true, ends: true, entropy: 4},
		{id: "anthropic-api-key", about: "Anthropic API key", lits: []string{"sk-ant-"}, expr: `sk-ant-[a-z]{2,8}\d\d-[\w-]{80,120}`, bound: true, entropy: 4},
		{id: "huggingface-access-token", about: "Hugging Face access token", lits: []string{"hf_"}, run: 34, expr: `hf_[A-Za-z0-9]{34}`, bound: true, ends: true, entropy: 3.5},
		{id: "groq-api-key", about: "Groq API key", lits: []string{"gsk_"}, expr: `gsk_[A-Za-z0-9]{52}`, bound: true, ends: true, entropy: 4},
		{id: "xai-api-key", about: "xAI API key", lits: []string{"xai-"}, expr: `xai-[A-Za-z0-9]{80}`, bound: true, ends: true, entropy: 4},
		{id: "openrouter-api-key", about: "OpenRouter API key", lits: []string{"sk-or-v1-"}, expr: `sk-or-v1-[0-9a-f]{64}`, bound: true, ends: true, entropy: 3},
		{id: "replicate-api-token", about: "Replicate API token", lits: []string{"r8_"}, expr: `r8_[A-Za-z0-9]{37}`, bound: true, ends: true, entropy: 3.5},
		{id: "langsmith-api-key", about: "LangSmith API key", lits: []string{"lsv2_"}, expr: `lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}`, bound: true, ends: true, entropy: 3},
		{id: "pinecone-api-key", about: "Pinecone API key", lits: []string{"pcsk_"}, expr: `pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{50,80}`, bound: true, ends: true, entropy: 4},

		{id: "stripe-access-token", about: "Stripe API key", lits: []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_"}, expr: `[sr]k_(?:live|test)_[A-Za-z0-9]{24,247}`, bound: true, ends: true, entropy: 3.8},
		{id: "square-access-token", about: "Square access token", lits: []string{"EAAA"}, expr: `EAAA[\w-]{60}`, bound: true, ends: true, entropy: 4.5},
		{id: "square-access-token", about: "Square application secret", lits: []string{"sq0atp-", "sq0csp-"}, expr: `sq0(?:atp-[\w-]{22}|csp-[\w-]{43})`, bound: true, ends: true, entropy: 3},
		{id: "twilio-api-key", about: "Twilio API key", lits: []string{"SK"}, run: 32, expr: `SK[0-9a-f]{32}`, bound: true, ends: true, entropy: 3},
		{id: "twilio-account-sid", about: "Twilio account SID", lits: []string{"AC"}, run: 32, expr: `AC[0-9a-f]{32}`, bound: true, ends: true, entropy: 3},
		{id: "mailgun-api-key", about: "Mailgun API key", lits: []string{"key-"}, run: 32, expr: `key-[0-9a-f]{32}`, bound: true, ends: true, entropy: 3},
		{id: "mailchimp-api-key", about: "Mailchimp API key", lits: []string{"-us"}, at: 32, expr: `[0-9a-f]{32}-us\d{1,2}`, bound: true, ends: true, entropy: 3},
		{id: "slack-webhook-url", about: "Slack webhook URL", lits: []string{"hooks.slack.com/"}, expr: `hooks\.slack\.com/(?:services/T[A-Z0-9]{8,12}/B[A-Z0-9]{8,12}/[A-Za-z0-9]{23,24}|workflows/T[A-Z0-9]{8,12}/A[A-Z0-9]{8,12}/\d{17,20}/[A-Za-z0-9]{23,24})`, ends: true, entropy: 3.5},
		{id: "teams-webhook-url", about: "Microsoft Teams webhook URL", lits: []string{".webhook.office.com/webhookb2/"}, expr: `\.webhook\.office\.com/webhookb2/(` + uuid + `@` + uuid + `/IncomingWebhook/[0-9a-f]{32}/` + uuid + `)`, entropy: 3},
		{id: "discord-bot-token", about: "Discord bot token", lits: []string{"MT", "MD", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"}, run: 21, expr: `[MNO][A-Za-z0-9]{23,27}\.[\w-]{6}\.[\w-]{27,38}`, bound: true, ends: true, entropy: 4},
		{id: "discord-webhook-url", about: "Discord webhook URL", lits: []string{"discord.com/api/", "discordapp.com/api/"}, expr: `discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{17,20}/([\w-]{60,80})`, ends: true, entropy: 4},
		{id: "telegram-bot-token", about: "Telegram bot token", lits: []string{":AA"}, at: 8, expr: `\d{8}:(AA[\w-]{33})`, ends: true, entropy: 4},
		{id: "webhook-signing-secret", about: "webhook signing secret", lits: []string{"whsec_"}, expr: `whsec_[A-Za-z0-9+/]{32,88}={0,2}`, bound: true, ends: true, entropy: 3.5},
		{id: "json-web-token", about: "JSON Web Token", lits: []string{"eyJ"}, expr: `eyJ[\w-]{10,}\.eyJ[\w-]`, bound: true, refine: jwt, entropy: 4},
		{id: "telnyx-api-key", about: "Telnyx API key", lits: []string{"KEY0"}, expr: `KEY0[0-9A-F]{31}_[A-Za-z0-9]{22}`, bound: true, ends: true, entropy: 3.5},

		{id: "docker-access-token", about: "Docker access token", lits: []string{"dckr_pat_", "dckr_oat_"}, expr: `dckr_[po]at_[\w-]{27,32}`, bound: true, ends: true, entropy: 3.5},
		{id: "nuget-api-key", about: "NuGet API key", lits: []string{"oy2"}, run: 43, expr: `oy2[a-z0-9]{43}`, bound: true, ends: true, entropy: 4},
		{id: "crates-api-token", about: "crates.io API token", lits: []string{"cio"}, run: 32, expr: `cio[A-Za-z0-9]{32}`, bound: true, ends: true, entropy: 4},
		{id: "circleci-token", about: "CircleCI token", lits: []string{"CCIPAT_", "CCIPRJ_"}, expr: `CCIP(?:AT|RJ)_[A-Za-z0-9]{20,24}_[0-9a-f]{40}`, bound: true, ends: true, entropy: 3.5},
		{id: "buildkite-token", about: "Buildkite token", lits: []string{"bkua_"}, expr: `bkua_[0-9a-f]{40}`, bound: true, ends: true, entropy: 3},
		{id: "terraform-token", about: "Terraform token", lits: []string{".atlasv1."}, at: 14, expr: `[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}`, bound: true, ends: true, entropy: 4},
		{id: "vault-service-token", about: "HashiCorp Vault service token", lits: []string{"hvs."}, expr: `hvs\.[\w-]{24,300}`, bound: true, ends: true, entropy: 3.8},
		{id: "doppler-token", about: "Doppler token", lits: []string{"dp.pt.", "dp.st.", "dp.sa.", "dp.ct.", "dp.scim.", "dp.audit."}, expr: `dp\.(?:pt|st|sa|ct|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}`, bound: true, ends: true, entropy: 4},
		{id: "supabase-secret-key", about: "Supabase secret key", lits: []string{"sb_secret_"}, expr: `sb_secret_[\w-]{22,64}`, bound: true, ends: true, entropy: 3.8},
		{id: "supabase-access-token", about: "Supabase access token", lits: []string{"sbp_"}, expr: `sbp_(?:v\d_)?[0-9a-f]{40}`, bound: true, ends: true, entropy: 3},
		{id: "figma-token", about: "Figma token", lits: []string{"figd_"}, expr: `figd_[\w-]{40}`, bound: true, ends: true, entropy: 3.5},
		{id: "cloudflare-api-token", about: "Cloudflare API token", lits: []string{"cfut_", "cfat_", "cfk_"}, expr: `cf(?:ut|at|k)_[A-Za-z0-9_-]{40}[0-9a-f]{8}`, bound: true, ends: true, entropy: 4},
		{id: "netlify-access-token", about: "Netlify access token", lits: []string{"nfp_"}, expr: `nfp_[A-Za-z0-9]{36}`, bound: true, ends: true, entropy: 3.8},
		{id: "mapbox-secret-token", about: "Mapbox secret token", lits: []string{"sk.eyJ"}, expr: `sk\.eyJ[\w-]{50,200}\.[\w-]{20,40}`, bound: true, ends: true, entropy: 4},
		{id: "hubspot-private-app-token", about: "HubSpot private app token", lits: []string{"pat-na", "pat-eu", "pat-ap"}, expr: `pat-(?:na|eu|ap)\d-` + uuid, bound: true, ends: true, entropy: 3},
		{id: "atlassian-api-token", about: "Atlassian API token", lits: []string{"ATATT3", "ATCTT3"}, expr: `AT[AC]TT3[\w=-]{170,300}`, bound: true, entropy: 4},
		{id: "bitbucket-app-password", about: "Bitbucket app password", lits: []string{"ATBB"}, expr: `ATBB[A-Za-z0-9]{32}`, bound: true, ends: true, entropy: 4},
		{id: "notion-integration-token", about: "Notion integration token", lits: []string{"secret_"}, run: 43, expr: `secret_[A-Za-z0-9]{43}`, bound: true, ends: true, entropy: 4},
		{id: "linear-oauth-token", about: "Linear OAuth token", lits: []string{"lin_oauth_"}, expr: `lin_oauth_[0-9a-f]{64}`, bound: true, ends: true, entropy: 3},
		{id: "dropbox-access-token", about: "Dropbox access token", lits: []string{"sl.u.", "sl.B", "sl.A"}, expr: `sl\.(?:u\.)?[\w-]{130,1000}`, bound: true, entropy: 4},
		{id: "contentful-token", about: "Contentful personal access token", lits: []string{"CFPAT-"}, expr: `CFPAT-[\w-]{43}`, bound: true, ends: true, entropy: 4},
		{id: "new-relic-key", about: "New Relic key", lits: []string{"NRAK-", "NRIQ-", "NRII-"}, expr: `NR(?:AK-[A-Z0-9]{27}|I[IQ]-[\w-]{32})`, bound: true, ends: true, entropy: 3.5},
		{id: "tailscale-key", about: "Tailscale key", lits: []string{"tskey-"}, expr: `tskey-(?:api|auth|client|scim|webhook)-[A-Za-z0-9]{8,24}-[A-Za-z0-9]{24,64}`, bound: true, ends: true, entropy: 3.8},
		{id: "maxmind-license-key", about: "MaxMind license key", lits: []string{"_mmk"}, at: 36, expr: `[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk`, bound: true, ends: true, entropy: 4},
		{id: "posthog-api-key", about: "PostHog API key", lits: []string{"phx_", "phs_"}, expr: `ph[xs]_[A-Za-z0-9]{43,48}`, bound: true, ends: true, entropy: 4},
		{id: "typeform-token", about: "Typeform access token", lits: []string{"tfp_"}, expr: `tfp_[\w.=-]{59}`, bound: true, entropy: 4},
		{id: "tencent-secret-id", about: "Tencent Cloud secret ID", lits: []string{"AKID"}, expr: `AKID[A-Za-z0-9]{32}`, bound: true, ends: true, entropy: 4},
		{id: "sourcegraph-access-token", about: "Sourcegraph access token", lits: []string{"sgp_", "sgd_"}, expr: `sg[pd]_(?:(?:[0-9a-f]{16}|local)_)?[0-9a-f]{40,64}`, bound: true, ends: true, entropy: 3},
	}
}
