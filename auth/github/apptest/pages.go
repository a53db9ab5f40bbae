package apptest

import (
	"embed"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

//go:embed pages.html
var pagesFS embed.FS

var pages = template.Must(template.ParseFS(pagesFS, "pages.html"))

const cookie = "github_stand_in"

// page writes one of pages.html. The lock is held.
func (s *Server) page(w http.ResponseWriter, r *http.Request, status int, name, title string, v any) {
	login := ""
	if p := s.visitor(r); p != nil {
		login = p.login
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := pages.ExecuteTemplate(w, "page", object{"Title": title, "Name": name, "V": v, "Login": login, name: true}); err != nil {
		panic(err)
	}
}

// visitor is who is signed in at the browser. The lock is held.
func (s *Server) visitor(r *http.Request) *account {
	c, err := r.Cookie(cookie)
	if err != nil {
		return nil
	}
	return s.world.accounts[s.world.sessions[c.Value]]
}

func (s *Server) toSignIn(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/login?return_to="+url.QueryEscape(r.URL.RequestURI()), http.StatusFound)
}

// signIn asks who it is, without a password.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := r.Form.Get("return_to")
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") {
		to = "/"
	}
	if r.Method == http.MethodPost {
		if p := s.world.account(r.Form.Get("login")); p != nil && !p.org {
			http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.session(p), Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
			http.Redirect(w, r, to, http.StatusSeeOther)
			return
		}
	}
	s.page(w, r, http.StatusOK, "signin", "Sign in", object{"Return": to})
}

func (s *Server) session(p *account) string {
	key := fresh("")
	s.world.sessions[key] = p.id
	return key
}

func pairs(q url.Values) (all [][2]string) {
	for _, name := range slices.Sorted(maps.Keys(q)) {
		for _, v := range q[name] {
			all = append(all, [2]string{name, v})
		}
	}
	return all
}

// handler serves everything.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.page(w, r, http.StatusOK, "message", "GitHub", "A stand-in for tests.")
	})
	mux.Handle("/api/v3/", http.StripPrefix("/api/v3", s.api()))
	both := func(path string, f http.HandlerFunc) {
		mux.HandleFunc("GET "+path, f)
		mux.HandleFunc("POST "+path, f)
	}
	both("/login", s.signIn)
	both("/login/oauth/authorize", s.authorize)
	mux.HandleFunc("POST /login/oauth/access_token", s.accessToken)
	both("/settings/apps/new", s.newApp)
	both("/organizations/{org}/settings/apps/new", s.newApp)
	both("/github-apps/{slug}/installations/new", s.installNew)
	both("/settings/installations/{id}", s.manage)
	both("/organizations/{org}/settings/installations/{id}", s.manage)
	both("/organizations/{org}/settings/installation_requests", s.requestsPage)
	site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// What another site's form sends is a manifest, and nothing else.
		cross := r.Header.Get("Sec-Fetch-Site") == "cross-site" || r.Header.Get("Sec-Fetch-Site") == "same-site"
		if r.Method == http.MethodPost && cross && !(strings.HasSuffix(r.URL.Path, "/settings/apps/new") && !r.URL.Query().Has("draft")) {
			http.Error(w, "cross-site", http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if err := r.ParseForm(); err != nil {
			http.Error(w, "bad form", http.StatusBadRequest)
			return
		}
		kind := "page"
		if strings.HasSuffix(r.URL.Path, "access_token") {
			kind = "client"
		}
		s.mu.Lock()
		s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Kind: kind})
		s.mu.Unlock()
		if !s.misbehave(w, r, r.URL.Path) {
			mux.ServeHTTP(w, r)
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.begin() {
			return
		}
		defer s.end()
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/v3/"):
			mux.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/_"):
			s.control(w, r)
		case strings.Contains(r.URL.Path, ".git/"):
			s.git(w, r)
		default:
			site.ServeHTTP(w, r)
		}
	})
}
