package oidctest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"
)

// Options configures a Server. Zero fields mean the defaults.
type Options struct {
	// ClientID and ClientSecret belong to the only client. The default is "satchel",
	// without a secret.
	ClientID, ClientSecret string
	// Redirects are the client's redirect URIs. If empty, all are accepted.
	Redirects []string
	// Path is appended to the server's address to form the issuer, such as "/realms/one".
	Path string
	// Address is the address to listen on. The default is a free port of 127.0.0.1.
	Address string
	Now     func() time.Time
}

// Person is the person who signs in. The server asks no question.
type Person struct {
	Subject  string
	Email    string
	Verified any // the claim email_verified: true, "true" or false; nil omits it
	Name     string
	Username string // the claim preferred_username
}

// Behaviour describes faults of the server. The zero value has none.
type Behaviour struct {
	Down        bool                 // every answer is 503
	Stall       <-chan struct{}      // every answer waits to receive from this channel
	Oversize    map[string]int       // by path, such as "/token": the bytes of JSON in the answer
	Status      map[string]int       // by path: the answer has only this status and the header Location
	Location    string               // the Location for Status; default https://elsewhere.example/
	Metadata    func(map[string]any) // changes the configuration document
	Refuse      string               // the error of the authorization response
	OmitIss     bool                 // no iss in the authorization response
	Iss         string               // replaces iss
	TokenError  string               // the error of the token response, with status 400
	Algorithm   string               // signs the ID token: ES256 (default), EdDSA, RS256, PS256, HS256, none
	Claims      func(map[string]any) // changes the ID token's claims
	Header      func(map[string]any) // changes the ID token's header
	Token       func(string) string  // changes the signed ID token
	Response    func(map[string]any) // changes the token response
	Userinfo    func(map[string]any) // changes the userinfo response
	LeanIDToken bool                 // only the userinfo endpoint returns the e-mail address and the name
}

// Server is a running provider. It is safe for concurrent use.
type Server struct {
	// URL is the issuer's identifier.
	URL string
	o   Options
	srv *httptest.Server

	closed chan struct{}
	once   sync.Once

	mu        sync.Mutex
	person    Person
	behaviour Behaviour
	keys      *keys
	codes     map[string]authorization
	tokens    map[string]Person
	requests  map[string]int
}

type authorization struct {
	person                     Person
	redirect, challenge, nonce string
	scope                      string
}

// New starts a server. Close ends it.
func New(o Options) *Server {
	if o.ClientID == "" {
		o.ClientID = "satchel"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{
		o: o, closed: make(chan struct{}), keys: newKeys(), codes: map[string]authorization{}, tokens: map[string]Person{}, requests: map[string]int{},
		person: Person{Subject: "248289761001", Email: "ada@example.com", Verified: true, Name: "Ada Lovelace", Username: "ada"},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+o.Path+"/.well-known/openid-configuration", s.configuration)
	mux.HandleFunc("GET "+o.Path+"/jwks", s.jwks)
	mux.HandleFunc("GET "+o.Path+"/authorize", s.authorize)
	mux.HandleFunc("POST "+o.Path+"/token", s.token)
	mux.HandleFunc("GET "+o.Path+"/userinfo", s.userinfo)
	s.srv = httptest.NewUnstartedServer(s.misbehave(mux))
	if o.Address != "" {
		l, err := net.Listen("tcp", o.Address)
		if err != nil {
			panic(fmt.Sprintf("oidctest: %v", err))
		}
		s.srv.Listener.Close()
		s.srv.Listener = l
	}
	s.srv.Start()
	s.URL = s.srv.URL + o.Path
	return s
}

// Close ends the server and the requests in progress.
func (s *Server) Close() {
	s.once.Do(func() { close(s.closed) })
	s.srv.CloseClientConnections()
	s.srv.Close()
}

// SignIn sets the person who signs in from now on.
func (s *Server) SignIn(p Person) { s.mu.Lock(); s.person = p; s.mu.Unlock() }

// Behave sets the behaviour of the server from now on.
func (s *Server) Behave(b Behaviour) { s.mu.Lock(); s.behaviour = b; s.mu.Unlock() }

// Rotate replaces the keys. Tokens that the old keys signed are no longer valid.
func (s *Server) Rotate() { k := newKeys(); s.mu.Lock(); s.keys = k; s.mu.Unlock() }

// Requests returns the number of requests to a path such as "/jwks".
func (s *Server) Requests(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[s.o.Path+path]
}

// Browse requests an authorization endpoint's URL as a person's browser does, and returns
// the query of the redirect URI.
func (s *Server) Browse(location string) (url.Values, error) {
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Get(location)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		return nil, fmt.Errorf("oidctest: the authorization endpoint answered %s", resp.Status)
	}
	u, err := resp.Location()
	if err != nil {
		return nil, err
	}
	return u.Query(), nil
}

func (s *Server) now() (Behaviour, Person, *keys) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behaviour, s.person, s.keys
}

func (s *Server) misbehave(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests[r.URL.Path]++
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
		path := r.URL.Path[len(s.o.Path):]
		switch {
		case b.Down:
			http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
		case b.Status[path] != 0:
			location := b.Location
			if location == "" {
				location = "https://elsewhere.example/"
			}
			w.Header().Set("Location", location)
			w.WriteHeader(b.Status[path])
		case b.Oversize[path] != 0:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"padding":"`)
			for range b.Oversize[path] / 1024 {
				if _, err := fmt.Fprintf(w, "%01024d", 0); err != nil {
					return
				}
			}
			fmt.Fprint(w, `"}`)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func fail(w http.ResponseWriter, status int, code string) {
	reply(w, status, map[string]string{"error": code, "error_description": "SECRET-DETAIL of " + code})
}

func fresh() string { return rand.Text() }
