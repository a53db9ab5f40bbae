package apptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

type object = map[string]any

type answer struct {
	status int
	body   any
	header http.Header
}

func ok(v any) answer { return answer{status: http.StatusOK, body: v} }

func failed(status int, message string) answer {
	return answer{status: status, body: object{"message": message, "documentation_url": "https://docs.github.com/rest"}}
}

var (
	notFound    = failed(http.StatusNotFound, "Not Found")
	badToken    = failed(http.StatusUnauthorized, "Bad credentials")
	badJWT      = failed(http.StatusUnauthorized, "A JSON web token could not be decoded")
	badJSON     = failed(http.StatusBadRequest, "Problems parsing JSON")
	unreachable = failed(http.StatusForbidden, "Resource not accessible by integration")
	suspended   = failed(http.StatusForbidden, "This installation has been suspended")
)

// call is a request to the API, with the app and the token that its credential names.
type call struct {
	*http.Request
	w    *world
	body []byte
	kind string // the kind of the credential: app, installation, user, client or ""
	app  *app
	tok  *token
}

func (c *call) number(name string) int64 {
	n, err := strconv.ParseInt(c.PathValue(name), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// installation returns the installation in the path, if it belongs to the app.
func (c *call) installation() *installation {
	if i := c.w.installations[c.number("id")]; i != nil && i.app == c.app {
		return i
	}
	return nil
}

// repository returns the repository in the path, by id or name, if the credential gives
// access to it.
func (c *call) repository() *repository {
	r := c.w.repos[c.number("id")]
	if c.PathValue("id") == "" {
		r = c.w.repo(c.PathValue("owner") + "/" + c.PathValue("repo"))
	}
	if r == nil || !c.w.reaches(c.tok, r) {
		return nil
	}
	return r
}

// endpoint is an endpoint of the API, with the kinds of credentials that it accepts.
type endpoint struct {
	pattern, kinds string
	answer         func(*call) answer
}

func (s *Server) endpoints() []endpoint {
	return []endpoint{
		{"POST /app-manifests/{code}/conversions", "", s.convert},
		{"GET /app", "app", func(c *call) answer { return ok(s.appBody(c.w, c.app)) }},
		{"GET /app/installations/{id}", "app", s.getInstallation},
		{"GET /repos/{owner}/{repo}/installation", "app", s.repositoryInstallation},
		{"POST /app/installations/{id}/access_tokens", "app", s.mint},
		{"DELETE /applications/{client}/token", "client", s.revoke},
		{"GET /user", "user", func(c *call) answer { return ok(s.publicUser(c.tok.person)) }},
		{"GET /user/emails", "user", s.emails},
		{"GET /user/installations", "user", s.userInstallations},
		{"GET /user/installations/{id}/repositories", "user", s.userRepositories},
		{"GET /user/{id}", "installation user", s.userByID},
		{"POST /user/repos", "user", s.createRepository},
		{"POST /orgs/{org}/repos", "user installation", s.createRepository},
		{"GET /repositories/{id}", "installation user", s.getRepository},
		{"GET /repos/{owner}/{repo}", "installation user", s.getRepository},
		{"GET /repos/{owner}/{repo}/collaborators/{username}/permission", "installation user", s.getPermission},
	}
}

const (
	maxBody          = 1 << 20
	userLife         = 8 * time.Hour
	installationLife = time.Hour
)

// api serves the REST API and validates its requests and answers.
func (s *Server) api() http.Handler {
	mux := http.NewServeMux()
	for _, e := range s.endpoints() {
		mux.HandleFunc(e.pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(e, w, r) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.with(func(*world) {
			s.violations = append(s.violations, fmt.Sprintf("%s %s: the stand-in has no such endpoint", r.Method, r.URL.Path))
		})
		reply(w, http.StatusNotFound, notFound.body)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.misbehave(w, r) {
			s.with(func(*world) { s.saw(r, "", 0) })
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// saw records a request. The caller must hold the lock.
func (s *Server) saw(r *http.Request, kind string, status int) {
	s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Kind: kind, Status: status})
}

func (s *Server) serve(e endpoint, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	var a answer
	var text []byte
	s.with(func(world *world) {
		c := &call{Request: r, w: world, body: body}
		var allowed bool
		if a, allowed = s.authenticate(c, e.kinds); allowed {
			a = e.answer(c)
		}
		s.saw(r, c.kind, a.status)
		if a.body == nil {
			return
		}
		// The answer is encoded under the lock, because it may point into the world.
		if text, err = json.Marshal(a.body); err != nil {
			panic(err)
		}
		var v object
		if s.behaviour.Garble != nil && json.Unmarshal(text, &v) == nil {
			s.behaviour.Garble(r.URL.Path, v)
			text, _ = json.Marshal(v)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	})
	maps.Copy(w.Header(), a.header)
	for _, v := range s.check.check(r, body, a.status, w.Header(), text) {
		s.with(func(*world) { s.violations = append(s.violations, r.Method+" "+r.URL.Path+": "+v) })
	}
	w.WriteHeader(a.status)
	w.Write(text)
}

// authenticate finds the app and the token that the request's credential names. It refuses a
// credential whose kind is not in kinds.
func (s *Server) authenticate(c *call, kinds string) (answer, bool) {
	if c.Header.Get("User-Agent") == "" {
		return failed(http.StatusForbidden, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header"), false
	}
	if kinds == "" {
		return answer{}, true
	}
	scheme, credential, _ := strings.Cut(c.Header.Get("Authorization"), " ")
	switch strings.ToLower(scheme) {
	case "basic":
		id, secret, _ := c.BasicAuth()
		if a := c.w.client(id); a != nil && a.clientSecret == secret {
			c.kind, c.app = "client", a
		}
	case "bearer", "token":
		if t := c.w.tokens[credential]; t != nil && t.expires.After(s.now()) {
			c.tok, c.app, c.kind = t, t.app, "installation"
			if t.person != nil {
				c.kind = "user"
			}
		} else if strings.Count(credential, ".") == 2 && !strings.HasPrefix(credential, "gh") {
			if c.app = s.appOf(c.w, credential); c.app == nil {
				return badJWT, false
			}
			c.kind = "app"
		}
	}
	switch {
	case c.kind == "":
		return badToken, false
	case c.kind == "installation" && !c.tok.installation.suspended.IsZero():
		return suspended, false
	case slices.Contains(strings.Fields(kinds), c.kind):
		return answer{}, true
	case kinds == "app":
		return badJWT, false
	}
	return unreachable, false
}

// appOf returns the app that signed a JWT. The JWT must expire within ten minutes. Like GitHub,
// appOf allows a clock that is ahead by a minute.
func (s *Server) appOf(w *world, text string) (found *app) {
	now, skew := s.now(), time.Minute
	var claims jwt.RegisteredClaims
	_, err := jwt.ParseWithClaims(text, &claims, func(*jwt.Token) (any, error) {
		found = find(w.apps, func(a *app) bool { return claims.Issuer == strconv.FormatInt(a.id, 10) || claims.Issuer == a.clientID })
		if found == nil {
			return nil, errors.New("no such app")
		}
		return &found.key.PublicKey, nil
	}, jwt.WithValidMethods([]string{"RS256"}), jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return now }))
	if err != nil || claims.IssuedAt == nil || claims.IssuedAt.After(now.Add(skew)) || claims.ExpiresAt.After(now.Add(10*time.Minute+skew)) {
		return nil
	}
	return found
}

// list adds one page of all to v, as the field that is called name. It also adds the total count,
// and returns v as an answer that links to the next page.
func (s *Server) list(c *call, name string, all []object, v object) answer {
	q := c.URL.Query()
	number := func(name string, or int) int {
		if n, err := strconv.Atoi(q.Get(name)); err == nil && n > 0 {
			return n
		}
		return or
	}
	size, page := min(number("per_page", 30), 100), number("page", 1)
	if s.behaviour.PerPage > 0 {
		size = min(size, s.behaviour.PerPage)
	}
	v["total_count"], v[name] = len(all), append([]object{}, all[min((page-1)*size, len(all)):min(page*size, len(all))]...)
	a := ok(v)
	if page*size < len(all) {
		q.Set("page", strconv.Itoa(page+1))
		a.header = http.Header{"Link": {fmt.Sprintf("<%s%s?%s>; rel=%q", s.API(), c.URL.Path, q.Encode(), "next")}}
	}
	return a
}

// convert redeems the code of a manifest. The code works once. The answer is the app with its
// secrets.
func (s *Server) convert(c *call) answer {
	found := c.w.manifestCodes[c.PathValue("code")]
	delete(c.w.manifestCodes, c.PathValue("code"))
	if found.app == nil || !found.expires.After(s.now()) || c.w.apps[found.app.id] == nil {
		return notFound
	}
	v := s.appBody(c.w, found.app)
	v["client_secret"], v["pem"], v["webhook_secret"] = found.app.clientSecret, found.app.pem(), nil
	if found.app.hookSecret != "" {
		v["webhook_secret"] = found.app.hookSecret
	}
	return answer{status: http.StatusCreated, body: v}
}

func (s *Server) getInstallation(c *call) answer {
	i := c.installation()
	if i == nil {
		return notFound
	}
	return ok(s.installationBody(i))
}

// repositoryInstallation returns the app's installation that includes a repository.
func (s *Server) repositoryInstallation(c *call) answer {
	r := c.w.repo(c.PathValue("owner") + "/" + c.PathValue("repo"))
	if r == nil {
		return notFound
	}
	i := c.w.installed(c.app, r.owner)
	if i == nil || !slices.Contains(c.w.repositories(i), r) {
		return notFound
	}
	return ok(s.installationBody(i))
}

// mint creates an installation token.
func (s *Server) mint(c *call) answer {
	i := c.installation()
	switch {
	case i == nil:
		return notFound
	case !i.suspended.IsZero():
		return suspended
	}
	var in struct {
		IDs         []int64           `json:"repository_ids"`
		Names       []string          `json:"repositories"`
		Permissions map[string]string `json:"permissions"`
	}
	if len(c.body) > 0 && json.Unmarshal(c.body, &in) != nil {
		return badJSON
	}
	for _, name := range in.Names {
		id := int64(0) // no repository has this ID
		if r := c.w.repo(i.account.login + "/" + name); r != nil {
			id = r.id
		}
		in.IDs = append(in.IDs, id)
	}
	t := &token{app: i.app, installation: i, permissions: maps.Clone(i.permissions), repos: in.IDs, expires: s.now().Add(installationLife)}
	v := object{"repository_selection": i.selection()}
	if in.IDs != nil {
		var repos []object
		for _, r := range c.w.repositories(i) {
			if slices.Contains(in.IDs, r.id) {
				repos = append(repos, s.repositoryBody(r, ""))
			}
		}
		if len(repos) != len(in.IDs) {
			return failed(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
		}
		v["repository_selection"], v["repositories"] = "selected", repos
	}
	if in.Permissions != nil {
		t.permissions = in.Permissions
		for name, level := range in.Permissions {
			if rank(level) > rank(i.permissions[name]) {
				return failed(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
			}
		}
	}
	t.permissions["metadata"] = "read" // always included
	// Real tokens of this kind have a few hundred characters, including dots.
	name := fmt.Sprintf("ghs_%d_%s.%s.%s", i.app.id, fresh("ey"), fresh("ey")+fresh(""), fresh(""))
	c.w.tokens[name] = t
	c.w.issued = append(c.w.issued, name)
	v["token"], v["expires_at"], v["permissions"] = name, stamp(t.expires), t.permissions
	return answer{status: http.StatusCreated, body: v}
}

// revoke ends a person's token. The request must have the app's secret.
func (s *Server) revoke(c *call) answer {
	var in struct {
		AccessToken string `json:"access_token"`
	}
	if json.Unmarshal(c.body, &in) != nil || in.AccessToken == "" {
		return failed(http.StatusUnprocessableEntity, "Validation Failed")
	}
	t := c.w.tokens[in.AccessToken]
	if c.PathValue("client") != c.app.clientID || t == nil || t.app != c.app || t.person == nil || !t.expires.After(s.now()) {
		return notFound
	}
	delete(c.w.tokens, in.AccessToken)
	c.w.revoked++
	return answer{status: http.StatusNoContent}
}

func (s *Server) emails(c *call) answer {
	if rank(c.app.manifest.Permissions["emails"]) == 0 {
		return unreachable
	}
	return ok([]object{{"email": c.tok.person.login + "@example.com", "primary": true, "verified": true, "visibility": nil}})
}

func (s *Server) userInstallations(c *call) answer {
	var all []object
	for _, i := range sorted(c.w.installations) {
		if i.app == c.app && c.w.sees(c.tok.person, i) {
			all = append(all, s.installationBody(i))
		}
	}
	return s.list(c, "installations", all, object{})
}

func (s *Server) userRepositories(c *call) answer {
	i := c.installation()
	switch {
	case i == nil || !c.w.sees(c.tok.person, i):
		return notFound
	case !i.suspended.IsZero():
		return suspended
	}
	var all []object
	for _, r := range c.w.repositories(i) {
		if p := c.w.permission(c.tok.person, r); p != "none" {
			all = append(all, s.repositoryBody(r, p))
		}
	}
	return s.list(c, "repositories", all, object{"repository_selection": i.selection()})
}

func (s *Server) userByID(c *call) answer {
	if a := c.w.accounts[c.number("id")]; a != nil {
		return ok(s.publicUser(a))
	}
	return notFound
}

func (s *Server) getRepository(c *call) answer {
	r := c.repository()
	if r == nil {
		return notFound
	}
	permission := ""
	if c.tok.person != nil {
		permission = c.w.permission(c.tok.person, r)
	}
	return ok(s.repositoryBody(r, permission))
}

func (s *Server) getPermission(c *call) answer {
	r, p := c.repository(), c.w.account(c.PathValue("username"))
	switch {
	case r == nil:
		return notFound
	case p == nil || p.org:
		return failed(http.StatusNotFound, c.PathValue("username")+" is not a user")
	}
	role := c.w.permission(p, r)
	permission := role // GitHub's field permission has only four levels
	if older, ok := map[string]string{"triage": "read", "maintain": "write"}[role]; ok {
		permission = older
	}
	u := s.simpleUser(p)
	u["permissions"], u["role_name"] = permissions(role), role
	return ok(object{"permission": permission, "role_name": role, "user": u})
}

var repositoryName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// createRepository creates a repository if the app may administer repositories of the account.
func (s *Server) createRepository(c *call) answer {
	owner, person := c.tok.person, c.tok.person
	if org := c.PathValue("org"); org != "" {
		if owner = c.w.account(org); owner == nil || !owner.org {
			return notFound
		}
	}
	i := c.w.installed(c.app, owner)
	switch {
	case person != nil && owner != person && owner.members[person.id] == "":
		return notFound
	case i == nil || !i.suspended.IsZero() || rank(i.permissions["administration"]) < rank("write"):
		return unreachable
	case person == nil && (i != c.tok.installation || !c.tok.allows("administration", "write")):
		return unreachable
	}
	var in struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Private     bool   `json:"private"`
	}
	if json.Unmarshal(c.body, &in) != nil {
		return badJSON
	}
	if !repositoryName.MatchString(in.Name) || c.w.repo(owner.login+"/"+in.Name) != nil {
		a := failed(http.StatusUnprocessableEntity, "Repository creation failed.")
		a.body.(object)["errors"] = []object{{"resource": "Repository", "code": "custom", "field": "name", "message": "name already exists on this account"}}
		return a
	}
	r := s.makeRepository(c.w, owner, in.Name, in.Description, in.Private)
	if person != nil && owner != person {
		r.collaborators[person.id] = "admin"
	}
	i.repos[r.id] = true // an app has access to the repositories that it creates
	return answer{status: http.StatusCreated, body: s.repositoryBody(r, "admin")}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (a *account) kind() string {
	if a.org {
		return "Organization"
	}
	return "User"
}

// simpleUser returns an account in the form that it has inside other objects.
func (s *Server) simpleUser(a *account) object {
	return s.check.complete("simple-user", object{
		"login": a.login, "id": a.id, "html_url": s.URL + "/" + a.login, "type": a.kind(), "user_view_type": "public",
	})
}

func (s *Server) publicUser(a *account) object {
	return s.check.complete("public-user", s.simpleUser(a))
}

// repositoryBody returns a repository as somebody with the permission sees it. If the
// permission is empty, the field permissions is omitted.
func (s *Server) repositoryBody(r *repository, permission string) object {
	url, html, visibility := s.API()+"/repos/"+r.fullName(), s.URL+"/"+r.fullName(), "public"
	if r.private {
		visibility = "private"
	}
	v := object{
		"id": r.id, "name": r.name, "full_name": r.fullName(), "owner": s.simpleUser(r.owner), "private": r.private, "visibility": visibility,
		"description": r.description, "html_url": html, "url": url, "clone_url": html + ".git", "default_branch": "main",
		"pushed_at": stamp(s.now()),
	}
	if permission != "" {
		v["permissions"] = permissions(permission)
	}
	return s.check.complete("repository", s.check.complete("full-repository", v))
}

// permissions returns the flags that a permission implies.
func permissions(p string) object {
	return object{
		"admin": rank(p) >= rank("admin"), "maintain": rank(p) >= rank("maintain"), "push": rank(p) >= rank("write"),
		"triage": rank(p) >= rank("triage"), "pull": rank(p) >= rank("read"),
	}
}

func (s *Server) appBody(w *world, a *app) object {
	return s.check.complete("integration", object{
		"id": a.id, "slug": a.slug, "client_id": a.clientID, "owner": s.simpleUser(a.owner), "name": a.manifest.Name,
		"description": a.manifest.Description, "external_url": a.manifest.URL, "html_url": s.appURL(a),
		"permissions": a.manifest.Permissions, "events": a.manifest.Events,
	})
}

// appURL returns an app's public page. The path is that of GitHub Enterprise.
func (s *Server) appURL(a *app) string { return s.URL + "/github-apps/" + a.slug }

func (s *Server) installationBody(i *installation) object {
	v := object{
		"id": i.id, "account": s.simpleUser(i.account), "app_id": i.app.id, "app_slug": i.app.slug, "client_id": i.app.clientID,
		"target_id": i.account.id, "target_type": i.account.kind(), "repository_selection": i.selection(), "html_url": s.manageURL(i),
		"events": i.app.manifest.Events, "permissions": i.permissions,
	}
	if !i.suspended.IsZero() {
		v["suspended_at"], v["suspended_by"] = stamp(i.suspended), s.simpleUser(i.account)
	}
	return s.check.complete("installation", v)
}

func (i *installation) selection() string {
	if i.all {
		return "all"
	}
	return "selected"
}

// manageURL returns the page where the owner configures an installation.
func (s *Server) manageURL(i *installation) string {
	if i.account.org {
		return fmt.Sprintf("%s/organizations/%s/settings/installations/%d", s.URL, i.account.login, i.id)
	}
	return fmt.Sprintf("%s/settings/installations/%d", s.URL, i.id)
}
