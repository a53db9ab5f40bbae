package oauth

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNameIsCleaned(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"as it is", "Claude Code (laptop)", "Claude Code (laptop)"},
		{"other scripts", "Zoë 書庫", "Zoë 書庫"},
		{"blanks", "  a \t\n b  ", "a b"},
		{"Attack: text that turns round", "moc.elgoog\u202e evil\u2066", "moc.elgoog evil"},
		{"Attack: control characters", "a\x00b\x1b[31mc\u0085d", "ab[31mc d"},
		{"Attack: what cannot be seen", "a\u200bb\u00adc\ufeffd\U000e0041", "abcd"},
		{"Attack: blanks that are letters", "\u3164\u2800\u115f", ""},
		{"Attack: a tower of accents", "a" + strings.Repeat("\u0301", 50), "a\u0301\u0301"},
		{"Attack: bytes that are no text", "a\xffb", "ab"},
		{"too long", strings.Repeat("a", 500), strings.Repeat("a", maxName)},
		{"too long in bytes", strings.Repeat("書", 100), strings.Repeat("書", maxNameBytes/3)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := cleanName(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzDocument reads client metadata as a registration and as a document.
func FuzzDocument(f *testing.F) {
	const id = "https://a.example/c.json"
	for _, s := range []string{
		`{"client_id":"https://a.example/c.json","redirect_uris":["https://a.example/cb"],"client_name":"A"}`,
		`{"client_id":"https://a.example/c.json","redirect_uris":["javascript:1","http://localhost/cb"],"token_endpoint_auth_method":"none"}`,
		`{"client_id":"https://a.example/c.json","client_secret":"x","redirect_uris":[]}`, `[]`, `null`, `{"redirect_uris":{}}`, "{}\xff",
	} {
		f.Add([]byte(s), id)
	}
	f.Fuzz(func(t *testing.T, body []byte, id string) {
		if _, err := checkDocumentID(id); err == nil && (!strings.HasPrefix(id, "https://") || strings.ContainsAny(id, "@#\\ ") && !strings.Contains(id[8:], "/")) {
			t.Fatalf("%q was taken for an id", id)
		}
		m, err := parseClientMetadata(body)
		if err != nil {
			return
		}
		if !utf8.ValidString(m.name) || utf8.RuneCountInString(m.name) > maxName || len(m.name) > maxNameBytes || cleanName(m.name) != m.name {
			t.Fatalf("the name is %q", m.name)
		}
		c, err := m.document(id)
		if err == nil && (c.ID != m.clientID || m.hasSecret) {
			t.Fatalf("took %+v", m)
		}
		r, err2 := m.registered()
		for _, u := range append(c.RedirectURIs, r.RedirectURIs...) {
			if _, err := checkRedirect(u); err != nil {
				t.Fatalf("took the redirect %q: %v", u, err)
			}
		}
		if err == nil && len(c.RedirectURIs) == 0 || err2 == nil && len(r.RedirectURIs) == 0 {
			t.Fatal("took a client without a redirect")
		}
	})
}
