package githubtest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
)

// Options configure a Server. Zero fields take the defaults.
type Options struct {
	// ClientID and ClientSecret are the one app's; default "Iv1.satchel" and
	// "githubtest-secret".
	ClientID, ClientSecret string
	// Callback is the app's callback URL, below which redirect URIs must be; empty
	// for any.
	Callback string
	// Address is where to listen; default a free port of 127.0.0.1.
	Address string
}

// Person is who signs in, without a question.
type Person struct {
	ID        int64
	Login     string
	Name      string
	Type      string // default "User"
	Suspended string // the time since when; empty: not
	Emails    []Email
	Orgs      []Membership
}

// Email is an address of a person's.
type Email struct {
	Email    string `json:"email"`
	Primary  bool   `json:"primary"`
	Verified bool   `json:"verified"`
}

// Membership is one in an organisation: active or pending.
type Membership struct{ Org, State string }

// Behaviour is what the server does otherwise than GitHub does on a good day. The
// zero value is a good day. Paths are such as "/login/oauth/access_token" or
// "/user".
type Behaviour struct {
	Stall      <-chan struct{}        // every answer waits for it
	Status     map[string]int         // by path: answer with it, and Message
	Header     map[string]http.Header // by path: with these headers
	Message    string                 // of those answers
	Body       map[string]string      // by path: answer 200 with it
	Refuse     string                 // the error of the authorization response
	TokenError string                 // the error of the token response, with 200
	IgnoreOrg  bool                   // the filter state=active is not heeded
	PerPage    int                    // at most so many entries on a page
}

// Server is a running stand-in. It is safe for concurrent use.
type Server struct {
	// URL is the address as config has it.
	URL string
	o   Options
	srv *httptest.Server

	closed chan struct{}
	once   sync.Once

	mu        sync.Mutex
	person    Person
	behaviour Behaviour
	codes     map[string]grant
	tokens    map[string]grant
	requests  map[string]int
	revoked   int
}

type grant struct {
	person              Person
	redirect, challenge string
	scope               string
}

// New starts a server, which Close ends.
func New(o Options) *Server {
	if o.ClientID == "" {
		o.ClientID = "Iv1.satchel"
	}
	if o.ClientSecret == "" {
		o.ClientSecret = "githubtest-secret"
	}
	s := &Server{
		o: o, closed: make(chan struct{}), codes: map[string]grant{}, tokens: map[string]grant{}, requests: map[string]int{},
		person: Person{
			ID: 583231, Login: "octocat", Name: "The Octocat",
			Emails: []Email{{Email: "old@example.org", Verified: true}, {Email: "octocat@example.com", Primary: true, Verified: true}},
			Orgs:   []Membership{{Org: "octo-org", State: "active"}},
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login/oauth/authorize", s.authorize)
	mux.HandleFunc("POST /login/oauth/access_token", s.token)
	mux.HandleFunc("GET /api/v3/user", s.user)
	mux.HandleFunc("GET /api/v3/user/emails", s.emails)
	mux.HandleFunc("GET /api/v3/user/memberships/orgs", s.orgs)
	mux.HandleFunc("DELETE /api/v3/applications/{client}/token", s.revoke)
	s.srv = httptest.NewUnstartedServer(s.misbehave(mux))
	if o.Address != "" {
		l, err := net.Listen("tcp", o.Address)
		if err != nil {
			panic(fmt.Sprintf("githubtest: %v", err))
		}
		s.srv.Listener.Close()
		s.srv.Listener = l
	}
	s.srv.Start()
	s.URL = s.srv.URL
	return s
}

// Close ends the server and the requests that are under way.
func (s *Server) Close() {
	s.once.Do(func() { close(s.closed) })
	s.srv.CloseClientConnections()
	s.srv.Close()
}

// ClientID and ClientSecret are the app's.
func (s *Server) ClientID() string { return s.o.ClientID }

// ClientSecret is the app's secret.
func (s *Server) ClientSecret() string { return s.o.ClientSecret }

// SignIn says who signs in from now on.
func (s *Server) SignIn(p Person) { s.mu.Lock(); s.person = p; s.mu.Unlock() }

// Behave says how the server behaves from now on.
func (s *Server) Behave(b Behaviour) { s.mu.Lock(); s.behaviour = b; s.mu.Unlock() }

// Requests reports how many requests came to a path such as "/user".
func (s *Server) Requests(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[path]
}

// Tokens reports how many tokens are good, and how many were revoked.
func (s *Server) Tokens() (good, revoked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tokens), s.revoked
}

// Browse does what a person's browser does at the authorization endpoint, and
// returns the query with which it comes back to the redirect URI.
func (s *Server) Browse(location string) (url.Values, error) {
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Get(location)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		return nil, fmt.Errorf("githubtest: the authorization endpoint answered %s", resp.Status)
	}
	u, err := resp.Location()
	if err != nil {
		return nil, err
	}
	return u.Query(), nil
}

func (s *Server) now() (Behaviour, Person) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behaviour, s.person
}

func (s *Server) misbehave(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/api/v3")
		s.mu.Lock()
		s.requests[path]++
		b := s.behaviour
		s.mu.Unlock()
		if b.Stall != nil {
			select {
			case <-b.Stall:
			case <-r.Context().Done():
				return
			case <-s.closed: // the context of a request whose body nobody reads does not end
				return
			}
		}
		for name, values := range b.Header[path] {
			w.Header()[name] = values
		}
		switch {
		case b.Status[path] != 0:
			fail(w, b.Status[path], b.Message)
		case b.Body[path] != "":
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			fmt.Fprint(w, b.Body[path])
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func fail(w http.ResponseWriter, status int, message string) {
	reply(w, status, map[string]string{"message": message, "documentation_url": "https://docs.github.com/rest"})
}

func fresh(prefix string) string { return prefix + rand.Text() }
