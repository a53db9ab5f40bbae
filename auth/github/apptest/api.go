package apptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answer is one of the API.
type answer struct {
	status int
	body   any
	header http.Header
}

// call is a request of the API, with what its credential reaches.
type call struct {
	*http.Request
	w    *world
	body []byte
	kind string // app, installation, user, client or ""
	app  *app
	tok  *token
}

func failed(status int, message string) answer {
	return answer{status: status, body: object{"message": message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status)}}
}

func invalid(message string) answer {
	return answer{status: http.StatusUnprocessableEntity, body: object{"message": message, "documentation_url": "https://docs.github.com/rest"}}
}

var (
	notFound    = failed(http.StatusNotFound, "Not Found")
	badToken    = failed(http.StatusUnauthorized, "Bad credentials")
	unreachable = failed(http.StatusForbidden, "Resource not accessible by integration")
	suspended   = failed(http.StatusForbidden, "This installation has been suspended")
)

func reply(w http.ResponseWriter, status int, v any) {
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

// endpoint is one of the API, with the kinds of credential that it takes.
type endpoint struct {
	pattern, kinds string
	answer         func(*call) answer
}

func (s *Server) endpoints() []endpoint {
	return []endpoint{
		{"POST /app-manifests/{code}/conversions", "", s.convert},
		{"GET /app", "app", func(c *call) answer { return ok(s.integration(c.w, c.app)) }},
		{"GET /app/installations/{id}", "app", s.getInstallation},
		{"POST /app/installations/{id}/access_tokens", "app", s.mint},
		{"DELETE /applications/{client}/token", "client", s.clientToken},
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

func ok(v any) answer { return answer{status: http.StatusOK, body: v} }

const maxBody = 1 << 20

// api serves the REST API, validates what it is asked and what it answers.
func (s *Server) api() http.Handler {
	mux := http.NewServeMux()
	for _, e := range s.endpoints() {
		mux.HandleFunc(e.pattern, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
			if err != nil {
				http.Error(w, "too large", http.StatusRequestEntityTooLarge)
				return
			}
			s.mu.Lock()
			c := &call{Request: r, w: &s.world, body: body}
			a, good := s.authenticate(c, e.kinds)
			if good {
				a = e.answer(c)
			}
			garble := s.behaviour.Garble
			s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Kind: c.kind, Status: a.status})
			// Made under the lock, since it may point into the world.
			var buf bytes.Buffer
			if a.body != nil {
				if err := json.NewEncoder(&buf).Encode(a.body); err != nil {
					panic(err)
				}
			}
			s.mu.Unlock()
			if garble != nil && a.body != nil {
				var v map[string]any
				if json.Unmarshal(buf.Bytes(), &v) == nil {
					garble(r.URL.Path, v)
					buf.Reset()
					json.NewEncoder(&buf).Encode(v)
				}
			}
			maps.Copy(w.Header(), a.header)
			if a.body != nil {
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
			}
			for _, v := range s.check.check(r, body, a.status, w.Header(), buf.Bytes()) {
				s.violate("%s %s: %s", r.Method, r.URL.Path, v)
			}
			w.WriteHeader(a.status)
			w.Write(buf.Bytes())
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.violate("%s %s: the stand-in has no such endpoint", r.Method, r.URL.Path)
		reply(w, http.StatusNotFound, notFound.body)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.misbehave(w, r, r.URL.Path) {
			s.mu.Lock()
			s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery})
			s.mu.Unlock()
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// authenticate finds what the request's credential reaches, and refuses it where
// it is of another kind than those named.
func (s *Server) authenticate(c *call, kinds string) (answer, bool) {
	if c.Header.Get("User-Agent") == "" {
		return failed(http.StatusForbidden, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header"), false
	}
	scheme, credential, _ := strings.Cut(c.Header.Get("Authorization"), " ")
	if kinds == "" {
		return answer{}, true
	}
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
			a, why := c.w.appOf(credential, s.now())
			if why != "" {
				return failed(http.StatusUnauthorized, why), false
			}
			c.kind, c.app = "app", a
		}
	}
	switch {
	case c.kind == "":
		return badToken, false
	case c.tok != nil && c.tok.person != nil && c.tok.person.suspended:
		return failed(http.StatusForbidden, "Sorry. Your account was suspended."), false
	case c.kind == "installation" && c.tok.installation.suspendedBy != nil:
		return suspended, false
	case !slices.Contains(strings.Fields(kinds), c.kind):
		if kinds == "app" {
			return failed(http.StatusUnauthorized, "A JSON web token could not be decoded"), false
		}
		return unreachable, false
	}
	return answer{}, true
}

// list is a page of entries under a name.
func (s *Server) list(c *call, name string, all []any, more object) answer {
	q := c.URL.Query()
	size, number := 30, 1
	if n, err := strconv.Atoi(q.Get("per_page")); err == nil && n > 0 {
		size = min(n, 100)
	}
	if s.behaviour.PerPage > 0 {
		size = min(size, s.behaviour.PerPage)
	}
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 0 {
		number = n
	}
	start, end := min((number-1)*size, len(all)), min(number*size, len(all))
	a := ok(nil)
	if last := (len(all) + size - 1) / size; last > 1 {
		var links []string
		link := func(rel string, page int) {
			q.Set("page", strconv.Itoa(page))
			links = append(links, fmt.Sprintf("<%s%s?%s>; rel=%q", s.API(), c.URL.Path, q.Encode(), rel))
		}
		if number > 1 {
			link("prev", number-1)
		}
		if number < last {
			link("next", number+1)
			link("last", last)
		}
		a.header = http.Header{"Link": {strings.Join(links, ", ")}}
	}
	entries := all[start:end]
	if entries == nil {
		entries = []any{}
	}
	v := object{"total_count": len(all), name: entries}
	maps.Copy(v, more)
	a.body = v
	return a
}

func (c *call) number(name string) int64 {
	n, err := strconv.ParseInt(c.PathValue(name), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// ofApp is the installation that the path names, if it is the app's.
func (c *call) ofApp() *installation {
	if i := c.w.installations[c.number("id")]; i != nil && i.app == c.app {
		return i
	}
	return nil
}

func sortedInstallations(w *world) []*installation {
	return slices.SortedFunc(maps.Values(w.installations), func(a, b *installation) int { return int(a.id - b.id) })
}

const (
	userLife         = 8 * time.Hour
	installationLife = time.Hour
)
