package apptest

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed pages.html
var pagesFS embed.FS

var pages = template.Must(template.ParseFS(pagesFS, "pages.html"))

const (
	cookie       = "github_stand_in"
	codeLife     = 10 * time.Minute
	manifestLife = time.Hour
)

// visit is a request for a page. It is served under the server's lock.
type visit struct {
	http.ResponseWriter
	r *http.Request
	w *world
	p *account // the person at the browser, or nil
}

// page renders a template of pages.html.
func (v *visit) page(status int, name, title string, data any) {
	login := ""
	if v.p != nil {
		login = v.p.login
	}
	v.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.Header().Set("Cache-Control", "no-store")
	v.WriteHeader(status)
	if err := pages.ExecuteTemplate(v, "page", object{"Title": title, "Name": name, "V": data, "Login": login, name: true}); err != nil {
		panic(err)
	}
}

func (v *visit) message(status int, title, text string) { v.page(status, "message", title, text) }

func (v *visit) missing() {
	v.message(http.StatusNotFound, "Page not found", "There is nothing here for you.")
}

func (v *visit) posts() bool { return v.r.Method == http.MethodPost }

// leave redirects the browser to an address with a query. It drops empty parameters.
func (v *visit) leave(target string, query url.Values) {
	u, err := url.Parse(target)
	if err != nil {
		panic(err)
	}
	q := u.Query()
	maps.Copy(q, query)
	maps.DeleteFunc(q, func(_ string, values []string) bool { return len(values) == 1 && values[0] == "" })
	u.RawQuery = q.Encode()
	http.Redirect(v, v.r, u.String(), http.StatusFound)
}

// site serves the pages. All except sign-in and the arrival of a manifest require a signed-in
// person.
func (s *Server) site() http.Handler {
	mux := http.NewServeMux()
	for path, f := range map[string]func(*visit){
		"/{$}":                                   func(v *visit) { v.message(http.StatusOK, "GitHub", "A stand-in for tests.") },
		"/login":                                 s.signIn,
		"/login/oauth/authorize":                 s.authorize,
		"/settings/apps/new":                     s.newApp,
		"/organizations/{org}/settings/apps/new": s.newApp,
		"/github-apps/{slug}/installations/new":  s.installNew,
		"/settings/installations/{id}":           s.manage,
		"/organizations/{org}/settings/installations/{id}":    s.manage,
		"/organizations/{org}/settings/installation_requests": s.requestsPage,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			s.with(func(world *world) {
				v := &visit{w, r, world, nil}
				if c, err := r.Cookie(cookie); err == nil {
					v.p = world.accounts[world.sessions[c.Value]]
				}
				if v.p == nil && path != "/login" && !arrives(r) {
					http.Redirect(w, r, "/login?return_to="+url.QueryEscape(r.URL.RequestURI()), http.StatusFound)
					return
				}
				f(v)
			})
		})
	}
	mux.HandleFunc("POST /login/oauth/access_token", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusOK, read(s, func(world *world) object { return s.accessToken(world, r) }))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if from := r.Header.Get("Sec-Fetch-Site"); r.Method == http.MethodPost && (from == "cross-site" || from == "same-site") && !arrives(r) {
			http.Error(w, "cross-site", http.StatusForbidden)
			return
		}
		if err := r.ParseForm(); err != nil {
			http.Error(w, "bad form", http.StatusBadRequest)
			return
		}
		kind := ""
		if strings.HasSuffix(r.URL.Path, "access_token") {
			kind = "client"
		}
		s.with(func(*world) { s.saw(r, kind, 0) })
		if !s.misbehave(w, r) {
			mux.ServeHTTP(w, r)
		}
	})
}

// arrives reports whether the request is a manifest in a form of another site. The browser
// sends no cookie with it.
func arrives(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/settings/apps/new") && !r.URL.Query().Has("draft")
}

// signIn asks for a login, but not for a password.
func (s *Server) signIn(v *visit) {
	to := v.r.Form.Get("return_to")
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") {
		to = "/"
	}
	if p := v.w.account(v.r.Form.Get("login")); v.posts() && p != nil && !p.org {
		http.SetCookie(v, &http.Cookie{Name: cookie, Value: v.w.session(p), Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
		http.Redirect(v, v.r, to, http.StatusSeeOther)
		return
	}
	v.page(http.StatusOK, "signin", "Sign in", object{"Return": to})
}

func (w *world) session(p *account) string {
	key := fresh("")
	w.sessions[key] = p.id
	return key
}

// authorize lets an app act for a person.
func (s *Server) authorize(v *visit) {
	q := v.r.URL.Query()
	if v.posts() {
		q = v.r.PostForm
	}
	a, redirect, method := v.w.client(q.Get("client_id")), q.Get("redirect_uri"), ""
	if q.Get("code_challenge") != "" {
		method = "S256"
	}
	back := func(answer url.Values) {
		answer.Set("state", q.Get("state"))
		v.leave(redirect, answer)
	}
	switch {
	case a == nil:
		v.missing()
	case !slices.Contains(a.manifest.Callbacks, redirect):
		v.message(http.StatusBadRequest, "Be careful!", "The redirect_uri is not associated with this application.")
	case q.Get("code_challenge_method") != method:
		back(url.Values{"error": {"invalid_request"}, "error_description": {"The code_challenge_method must be S256."}})
	case v.posts() && q.Get("deny") != "":
		back(url.Values{"error": {"access_denied"}, "error_description": {"The user has denied your application access."}})
	case !v.posts() && (!a.authorized[v.p.id] || q.Get("prompt") == "select_account"):
		var query [][2]string
		for name := range q {
			query = append(query, [2]string{name, q.Get(name)})
		}
		v.page(http.StatusOK, "authorize", "Authorize "+a.manifest.Name, object{
			"App": a.manifest.Name, "Login": v.p.login, "Known": a.authorized[v.p.id], "Host": redirect, "Query": query, "Return": v.r.URL.RequestURI(),
		})
	default:
		a.authorized[v.p.id] = true
		key := fresh("")[:20]
		v.w.codes[key] = code{app: a, person: v.p, redirect: redirect, challenge: q.Get("code_challenge"), expires: s.now().Add(codeLife)}
		back(url.Values{"code": {key}})
	}
}

// accessToken redeems a code. Like GitHub, it answers errors with status 200.
func (s *Server) accessToken(w *world, r *http.Request) object {
	refuse := func(code, description string) object { return object{"error": code, "error_description": description} }
	if e := s.behaviour.TokenError; e != "" {
		return refuse(e, "SECRET-DETAIL of "+e)
	}
	if r.URL.Query().Has("client_secret") || r.URL.Query().Has("code") {
		s.violations = append(s.violations, "a secret in the query of the token endpoint")
	}
	f := r.PostForm
	a := w.client(f.Get("client_id"))
	if a == nil || a.clientSecret != f.Get("client_secret") {
		return refuse("incorrect_client_credentials", "The client_id and/or client_secret passed are incorrect.")
	}
	c := w.codes[f.Get("code")]
	delete(w.codes, f.Get("code")) // each code works once, whatever the answer
	sum := sha256.Sum256([]byte(f.Get("code_verifier")))
	switch {
	case c.app != a || !c.expires.After(s.now()), c.challenge != "" && base64.RawURLEncoding.EncodeToString(sum[:]) != c.challenge:
		return refuse("bad_verification_code", "The code passed is incorrect or expired.")
	case f.Get("redirect_uri") != "" && f.Get("redirect_uri") != c.redirect:
		return refuse("redirect_uri_mismatch", "The redirect_uri MUST match the registered callback URL for this application.")
	}
	access, refresh := fresh("ghu_"), fresh("ghr_")
	w.tokens[access] = &token{app: a, person: c.person, expires: s.now().Add(userLife)}
	w.issued = append(w.issued, access, refresh)
	return object{
		"access_token": access, "expires_in": int(userLife.Seconds()), "refresh_token": refresh, "refresh_token_expires_in": 15897600,
		"token_type": "bearer", "scope": "",
	}
}

// newApp creates an app. It stores a manifest that arrives from another site. It then redirects
// the browser, so that the next request has the browser's cookie.
func (s *Server) newApp(v *visit) {
	org, q := v.r.PathValue("org"), v.r.URL.Query()
	if arrives(v.r) {
		key := fresh("")
		v.w.drafts[key] = draft{manifest: v.r.PostForm.Get("manifest"), state: q.Get("state"), org: org}
		http.Redirect(v, v.r, v.r.URL.Path+"?draft="+key, http.StatusSeeOther)
		return
	}
	d, found := v.w.drafts[q.Get("draft")]
	owner := v.p
	if org != "" {
		owner = v.w.account(org)
	}
	if !found || d.org != org || owner == nil || !owns(v.p, owner) {
		v.missing()
		return
	}
	m, err := parseManifest(d.manifest)
	if err != nil {
		v.message(http.StatusUnprocessableEntity, "Invalid GitHub App configuration", err.Error())
		return
	}
	if v.posts() {
		m.Name = strings.TrimSpace(v.r.PostForm.Get("name"))
	}
	taken := m.Name == "" || v.w.app(slugOf(m.Name)) != nil
	if !v.posts() || taken {
		if taken {
			m.Name += "-" + strings.ToLower(fresh("")[:4])
		}
		v.page(http.StatusOK, "manifest", "Create GitHub App", object{"Name": m.Name, "Owner": owner.login, "Manifest": m, "Action": v.r.URL.RequestURI()})
		return
	}
	delete(v.w.drafts, q.Get("draft"))
	key := fresh("")
	v.w.manifestCodes[key] = code{app: makeApp(v.w, owner, m), expires: s.now().Add(manifestLife)}
	v.leave(m.Redirect, url.Values{"code": {key}, "state": {d.state}})
}

// target is an account on which somebody may install an app, or ask for its installation.
type target struct{ Login, Note, Href string }

func (s *Server) targets(v *visit, a *app, state string) (all []target) {
	for _, on := range sorted(v.w.accounts) {
		if !mayInstall(a, v.p, on) {
			continue
		}
		t := target{Login: on.login, Href: v.r.URL.Path + "?" + url.Values{"target_id": {fmt.Sprint(on.id)}, "state": {state}}.Encode()}
		i := v.w.installed(a, on)
		switch {
		case i != nil && owns(v.p, on):
			t.Note, t.Href = "configure", s.manageURL(i)+"?"+url.Values{"state": {state}}.Encode()
		case i != nil:
			t.Note = "installed"
		case !owns(v.p, on):
			t.Note = "request"
		}
		all = append(all, t)
	}
	return all
}

// mayInstall reports whether somebody may install the app on an account, or ask its owners
// to do so. A private app can be installed only on the account that owns the app.
func mayInstall(a *app, p, on *account) bool {
	return (owns(p, on) || on.members[p.id] != "") && (a.manifest.Public || a.owner == on)
}

// installNew asks for the account, and then for the repositories.
func (s *Server) installNew(v *visit) {
	a := v.w.app(v.r.PathValue("slug"))
	if a == nil {
		v.missing()
		return
	}
	name, state := a.manifest.Name, v.r.Form.Get("state")
	id, _ := strconv.ParseInt(v.r.Form.Get("target_id"), 10, 64)
	on := v.w.accounts[id]
	switch {
	case on == nil || !mayInstall(a, v.p, on):
		if all := s.targets(v, a, state); len(all) > 0 {
			v.page(http.StatusOK, "targets", "Install "+name, object{"Targets": all, "App": name})
			return
		}
		v.missing()
	case !v.posts():
		v.page(http.StatusOK, "install", "Install "+name, object{
			"On": on.login, "Target": id, "State": state, "Owner": owns(v.p, on), "All": true, "Repositories": v.w.choices(on, nil), "Action": v.r.URL.Path,
		})
	case owns(v.p, on):
		s.installChosen(v, a, on, state)
	default:
		v.w.pending = append(v.w.pending, &pending{id: v.w.id(), app: a, account: on, requester: v.p})
		v.leave(a.manifest.Setup, url.Values{"setup_action": {"request"}, "state": {state}})
	}
}

// installChosen installs an app on the repositories in the form. state is empty if an owner
// approves a request.
func (s *Server) installChosen(v *visit, a *app, on *account, state string) {
	all, repos := chosen(v)
	i, err := s.install(v.w, a, on, v.p, all, repos)
	if err != nil {
		v.message(http.StatusUnprocessableEntity, "Not installed", err.Error())
		return
	}
	v.back(i, "install", state)
}

func (v *visit) back(i *installation, action, state string) {
	v.leave(i.app.manifest.Setup, url.Values{"installation_id": {fmt.Sprint(i.id)}, "setup_action": {action}, "state": {state}})
}

func chosen(v *visit) (all bool, repos []int64) {
	for _, text := range v.r.Form["repository"] {
		id, _ := strconv.ParseInt(text, 10, 64)
		repos = append(repos, id)
	}
	return v.r.Form.Get("selection") != "selected", repos
}

type choice struct {
	ID      int64
	Name    string
	Checked bool
}

func (w *world) choices(on *account, i *installation) (all []choice) {
	for _, r := range sorted(w.repos) {
		if r.owner == on {
			all = append(all, choice{r.id, r.fullName(), i != nil && i.repos[r.id]})
		}
	}
	return all
}

// manage serves the page where the owner configures an installation.
func (s *Server) manage(v *visit) {
	id, _ := strconv.ParseInt(v.r.PathValue("id"), 10, 64)
	i := v.w.installations[id]
	if i == nil || !owns(v.p, i.account) {
		v.missing()
		return
	}
	if !v.posts() {
		v.page(http.StatusOK, "manage", i.app.manifest.Name+" on "+i.account.login, object{
			"Action": v.r.URL.Path, "State": v.r.Form.Get("state"), "All": i.all, "Suspended": !i.suspended.IsZero(), "Repositories": v.w.choices(i.account, i),
		})
		return
	}
	switch v.r.Form.Get("act") {
	case "suspend":
		s.suspend(v.w, i)
	case "unsuspend":
		s.unsuspend(v.w, i)
	case "uninstall":
		s.uninstall(v.w, i)
		v.message(http.StatusOK, "Uninstalled", i.app.manifest.Name+" is gone from "+i.account.login+".")
		return
	default:
		all, repos := chosen(v)
		s.choose(v.w, i, all, repos)
		if i.app.manifest.OnUpdate {
			v.back(i, "update", v.r.Form.Get("state"))
			return
		}
	}
	http.Redirect(v, v.r, v.r.URL.RequestURI(), http.StatusSeeOther)
}

// requestsPage lists the members' requests to an organization's owners. A form on the page approves
// or deletes a request.
func (s *Server) requestsPage(v *visit) {
	on := v.w.account(v.r.PathValue("org"))
	if on == nil || !owns(v.p, on) {
		v.missing()
		return
	}
	var rows []object
	for n, q := range v.w.pending {
		if q.account != on {
			continue
		}
		if v.posts() && v.r.Form.Get("request") == fmt.Sprint(q.id) {
			if v.r.Form.Get("act") == "approve" {
				s.installChosen(v, q.app, on, "")
				return
			}
			v.w.pending = slices.Delete(v.w.pending, n, n+1)
			http.Redirect(v, v.r, v.r.URL.RequestURI(), http.StatusSeeOther)
			return
		}
		rows = append(rows, object{"ID": q.id, "App": q.app.manifest.Name, "Requester": q.requester.login, "Repositories": v.w.choices(on, nil)})
	}
	v.page(http.StatusOK, "requests", "Requests to install apps on "+on.login, object{"Rows": rows, "Action": v.r.URL.Path})
}
