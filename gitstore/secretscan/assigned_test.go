package secretscan_test

import (
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
