package web_test

import (
	"net/url"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/auth/github/app"
)

// Attack: names from GitHub contain markup, control characters or text that changes the
// direction of the line, or are very long.
func TestAttackHostileNamesFromGitHub(t *testing.T) {
	for name, evil := range map[string]string{
		"markup":         `</bdi></option><script>alert(1)</script><img src=x onerror=alert(2)>`,
		"an attribute":   `" onmouseover="alert(1)" x="`,
		"an address":     `javascript:alert(1)`,
		"bidi":           "\u202egnp.exe\u2066\u2069",
		"controls":       "a\x1b[31m\r\nSet-Cookie: x=y",
		"of a template":  `{{.Form}}`,
		"long":           strings.Repeat("long", 500),
		"long, combined": strings.Repeat("e\u0301", 500),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHubWorld(t)
			h.setApp(func(a *auth.GitHubApp) { a.Name, a.Owner, a.ClientID, a.Slug = evil, evil, evil, evil })
			h.hub.people["ada"] = app.Found{GitHubUser: 1, Login: "ada-l",
				Installations: []app.Installation{{ID: 1, Account: evil, AccountType: evil, Selection: evil, ManageURL: "javascript:alert(1)"}},
				Repositories: []app.Repository{
					{ID: 11, FullName: evil, Push: true, Installation: 1, DefaultBranch: evil},
					{ID: 12, FullName: "ada-l/notes", Push: true, Installation: 1, DefaultBranch: evil},
				}}
			b := h.as(h.ada)
			look := func(what string, a answer) {
				t.Helper()
				want(t, what, a, 200)
				for _, bad := range []string{"<script>alert", "<img src=x", `" onmouseover=`, `href="javascript:`, `action="javascript:`} {
					if strings.Contains(a.body, bad) {
						t.Errorf("%s: the page has %q", what, bad)
					}
				}
				for key := range a.Header {
					if strings.EqualFold(key, "x") || strings.Contains(strings.Join(a.Header[key], ""), "x=y") {
						t.Errorf("%s: a header was added", what)
					}
				}
				if n := strings.Count(a.body, "longlonglong"); len(a.body) > 100<<10 {
					t.Errorf("%s: %d bytes, %d times long", what, len(a.body), n)
				}
				// The effect of characters that change the direction ends with their
				// element.
				if i := strings.Index(a.body, "\u202e"); i >= 0 {
					for rest := a.body; ; {
						i := strings.Index(rest, "\u202e")
						if i < 0 {
							break
						}
						before := rest[:i]
						if open := strings.LastIndex(before, "<"); open >= 0 && !strings.HasPrefix(before[open:], "<bdi") && !strings.HasPrefix(before[open:], "<option") && !strings.HasPrefix(before[open:], "<input") {
							t.Errorf("%s: %q is not kept to itself: %.80s", what, evil, before[open:])
						}
						rest = rest[i+len("\u202e"):]
					}
				}
			}
			look("the App", b.get("/admin/github"))
			look("before", b.get(h.path))
			h.setApp(func(a *auth.GitHubApp) { a.Name, a.Owner = evil, evil })
			h.choosing(b, "ada")
			look("the list", b.get(h.path+"/pick"))
			look("the list, filtered", b.get(h.path+"/pick?q="+url.QueryEscape(shortOf(evil))))
			for _, state := range []auth.LinkState{auth.LinkConnected, auth.LinkSuspended, auth.LinkRemoved, auth.LinkLost} {
				h.link(h.space.ID, state, func(l *auth.RepositoryLink) { l.GitHubLogin, l.Account, l.FullName = evil, evil, evil })
				look("the connection, "+string(state), b.get(h.path))
				look("the connection for a reader, "+string(state), h.as(h.bob).get(h.path))
				look("the space, "+string(state), b.get("/spaces/"+string(h.space.ID)))
			}
		})
	}
}

func shortOf(s string) string { return s[:min(len(s), 60)] }
