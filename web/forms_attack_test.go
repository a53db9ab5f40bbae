package web_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/web"
)

// openForms are the forms for people who are signed out.
var openForms = []string{
	"/signin/link/{token}", "/signin/mail", "/signin/passkey/begin", "/signin/passkey/finish", "/signout",
	"/invite/{token}", "/invite/{token}/with/github", "/invite/{token}/with/oidc",
}

// ownForms are forms that only concern the sender, or that check what they name
// themselves.
var ownForms = []string{
	"/account/grants/revoke", "/account/identities/unlink", "/account/keys", "/account/link/github", "/account/link/oidc", "/account/passkeys/begin", "/account/passkeys/finish",
	"/account/passkeys/remove", "/account/sessions/end", "/account/sessions/end-others", "/library/add", "/library/add/preview", "/library/add/upload", "/library/sync/{source}", "/oauth/authorize", "/share", "/spaces", "/start/dismiss", "/start/local", "/start/skip", "/theme",
}

// Forms of a space that editors may not send either, and those that readers may: they
// concern their own files, or name what is not there.
var (
	ownersForms = []string{"end", "give", "github/check", "github/connect", "github/create", "github/disconnect", "github/install", "github/pick", "invitations/revoke",
		"invite", "members/{user}/role", "name", "publish", "remote", "remote/remove"}
	readersForms = []string{"held/discard", "publish/{source}/end"}
)

// newComplete is a world with every page. asked gets the people whose usage is read.
func newComplete(t *testing.T) (a *owners, asked *[][]space.UserID) {
	t.Helper()
	a, asked = newOwners(t, func(o *web.Options) { o.OIDC = &fakeProvider{label: "Acme"} }), new([][]space.UserID)
	a.healthy(asked)
	return a, asked
}

// fill returns the address of a page by its pattern.
func (a *owners) fill(id space.SpaceID, pattern string) string {
	return strings.NewReplacer(
		"{$}", "", "{id}", string(id), "{path...}", "skills/a/SKILL.md", "{user}", string(a.carol.ID), "{token}", "x", "{source}", "x",
		"{client}", "x", "{commit}", strings.Repeat("0", 40),
	).Replace(pattern)
}

// TestAttackForms tries every form without the token of the session, with that of another
// session, from another origin, signed out, and as a person without access, who only reads
// or who is no owner. New pages are included automatically; a page that is in none of the
// lists above is for admins, or about a space and for its editors.
func TestAttackForms(t *testing.T) {
	a, _ := newComplete(t)
	ada, eve, reader, editor := a.as(a.ada), a.as(a.eve), a.as(a.bob), a.as(a.carol)
	hers, another, readers, editors := ada.token(), eve.token(), reader.token(), editor.token()
	rows := func() (n int) {
		must(t, a.db.Read(t.Context()).Raw("SELECT (SELECT COUNT(*) FROM auth_audit) + (SELECT COUNT(*) FROM auth_flows) + (SELECT COUNT(*) FROM auth_sessions)").Scan(&n).Error)
		return n
	}
	head := func() string {
		c, err := a.git.Head(t.Context(), a.space.ID)
		must(t, err)
		return string(c)
	}
	var all []string
	for _, r := range a.server.Routes() {
		if pattern, ok := strings.CutPrefix(r.Pattern, "POST "); ok {
			all = append(all, pattern)
		}
	}
	if len(all) < 60 {
		t.Fatalf("only %d forms were found", len(all))
	}
	listed := slices.Concat(openForms, ownForms)
	for _, act := range slices.Concat(ownersForms, readersForms) {
		listed = append(listed, "/spaces/{id}/"+act)
	}
	for _, pattern := range listed {
		if !slices.Contains(all, pattern) {
			t.Errorf("%s is listed, and no page", pattern)
		}
	}
	before, at := rows(), head()
	foreign := func(site, origin string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Del("Origin")
			if site != "" {
				r.Header.Set("Sec-Fetch-Site", site)
			}
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
		}
	}
	for _, pattern := range all {
		act, about := strings.CutPrefix(pattern, "/spaces/{id}/")
		open, own := slices.Contains(openForms, pattern), slices.Contains(ownForms, pattern)
		target := a.fill(a.space.ID, pattern)
		body := func(token string) string {
			return url.Values{"form": {token}, "role": {"reader"}, "admin": {"1"}}.Encode()
		}
		for _, try := range []struct {
			name   string
			b      *browser
			body   string
			change func(*http.Request)
			want   int
		}{
			{"without a token", ada, "", func(*http.Request) {}, 403},
			{"with an empty token", ada, body(""), func(*http.Request) {}, 403},
			{"with a made-up token", ada, body(strings.Repeat("A", len(hers))), func(*http.Request) {}, 403},
			{"with another session's token", ada, body(another), func(*http.Request) {}, 403},
			{"with the token in the address", ada, "", func(r *http.Request) { r.URL.RawQuery = "form=" + hers }, 403},
			{"from another site", ada, body(hers), foreign("cross-site", "https://evil.test"), 403},
			{"from a sibling of the domain", ada, body(hers), foreign("same-site", "https://evil.satchel.test"), 403},
			{"from another origin, in an old browser", ada, body(hers), foreign("", "https://evil.test"), 403},
			{"as text", ada, body(hers), func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 403},
			{"from another port", ada, body(hers), foreign("", issuer+":8443"), 403},
			{"from the http page of the same name", ada, body(hers), foreign("", "http://satchel.test"), 403},
			{"from a page without an origin", ada, body(hers), foreign("cross-site", "null"), 403},
			{"from a page without an origin, in an old browser", ada, body(hers), foreign("", "null"), 403},
			{"signed out, from another site", a.browser(), "", foreign("cross-site", "https://evil.test"), 403},
			{"signed out", a.browser(), "", func(*http.Request) {}, 401},
			{"by somebody who has no part in it", eve, body(another), func(*http.Request) {}, 404},
			{"by who only reads", reader, body(readers), func(*http.Request) {}, 403},
			{"by who only edits", editor, body(editors), func(*http.Request) {}, 403},
			{"about what there is not", ada, body(hers), nil, 404},
		} {
			switch {
			case try.want == 401 && open, try.want == 404 && (open || own),
				try.b == reader && (!about || slices.Contains(readersForms, act)), try.b == editor && !slices.Contains(ownersForms, act):
				continue
			}
			to := target
			if try.change == nil {
				if !strings.Contains(pattern, "{id}") {
					continue
				}
				to, try.change = a.fill("s_none", pattern), func(*http.Request) {}
			}
			res := try.b.request(http.MethodPost, to, try.body, try.change)
			if res.StatusCode != try.want {
				t.Errorf("%s %s: %d, and not %d: %s", pattern, try.name, res.StatusCode, try.want, heading(res.body))
			}
			checkPage(t, pattern+" "+try.name, res)
		}
	}
	if n := rows(); n != before || head() != at || a.origin.calls() > 0 {
		t.Errorf("something was done: %d rows became %d", before, n)
	}
	if !ada.signedIn() || !eve.signedIn() {
		t.Error("somebody was signed out")
	}
}
