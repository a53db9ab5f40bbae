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

// Options configures a Server. Zero fields mean the defaults.
type Options struct {
	// ClientID and ClientSecret belong to the only app. The defaults are "Iv1.satchel" and
	// "githubtest-secret".
	ClientID, ClientSecret string
	// Callback is the app's callback URL. Redirect URIs must begin with it. If it is empty,
	// all are accepted.
	Callback string
	// Address is the address to listen on. The default is a free port of 127.0.0.1.
	Address string
}

// Person is the person who signs in. The server approves every authorization request at once.
type Person struct {
	ID        int64
	Login     string
	Name      string
	Type      string // the default is "User"
	Suspended string // when the suspension began; empty for none
	Emails    []Email
	Orgs      []Membership
}

// Email is an address of a person.
type Email struct {
	Email    string `json:"email"`
	Primary  bool   `json:"primary"`
	Verified bool   `json:"verified"`
}

// Membership is a membership in an organization, active or pending.
type Membership struct{ Org, State string }

// Behaviour describes faults of the server. The zero value has none. Paths have the form
// "/login/oauth/access_token" or "/user".
type Behaviour struct {
	Stall      <-chan struct{}        // every answer waits to receive from this channel
	Status     map[string]int         // by path: the status of an answer with the text Message
	Header     map[string]http.Header // by path: headers that are added to every answer
	Message    string                 // the text of the answers to paths in Status
	Body       map[string]string      // by path: the body of an answer with status 200
	Refuse     string                 // the error of the authorization response
	TokenError string                 // the error of the token response, with status 200
	IgnoreOrg  bool                   // ignores the filter state=active
	PerPage    int                    // maximum number of entries on a page
}

// Server is a running simulation of GitHub. It is safe for concurrent use.
type Server struct {
	// URL is the server's address. Set it as the URL in the Options of package github.
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

// New starts a server. Close ends it.
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

// Close ends the server and the requests in progress.
func (s *Server) Close() {
	s.once.Do(func() { close(s.closed) })
	s.srv.CloseClientConnections()
	s.srv.Close()
}

// ClientID returns the id of the app.
func (s *Server) ClientID() string { return s.o.ClientID }

// ClientSecret returns the secret of the app.
func (s *Server) ClientSecret() string { return s.o.ClientSecret }

// SignIn sets the person who signs in from now on.
func (s *Server) SignIn(p Person) { s.mu.Lock(); s.person = p; s.mu.Unlock() }

// Behave sets the behaviour of the server from now on.
func (s *Server) Behave(b Behaviour) { s.mu.Lock(); s.behaviour = b; s.mu.Unlock() }

// Requests returns the number of requests to a path such as "/user".
func (s *Server) Requests(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[path]
}

// Tokens returns the counts of valid and of revoked tokens.
func (s *Server) Tokens() (good, revoked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tokens), s.revoked
}

// Browse requests the authorization endpoint as a person's browser does, and returns the
// query of the redirect URI.
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
			case <-s.closed: // a request's context does not end if nobody reads its body
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
