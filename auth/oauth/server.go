package oauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"satchel/auth"
)

// The paths of the server, below the issuer.
const (
	PathMetadata  = "/.well-known/oauth-authorization-server"
	PathAuthorize = "/oauth/authorize"
	PathToken     = "/oauth/token"
	PathRegister  = "/oauth/register"
	PathRevoke    = "/oauth/revoke"
)

// The kinds of requests that Options.Limit limits.
const (
	LimitRegister = "register"
	LimitToken    = "token" // revocation too
	LimitMetadata = "metadata"
)

// Store keeps clients, codes and tokens. It must do all checks of a code or a token: its
// client, its redirect, its expiry, and that the person still has the right.
type Store interface {
	// Client returns a registered or a preset client. The error is a fault.NotFound for
	// others.
	Client(ctx context.Context, id string) (auth.Client, error)
	// RegisterClient stores a client. The error is a fault.Limited if there are too many.
	RegisterClient(ctx context.Context, c auth.Client) error
	// CreateCode returns a fresh authorization code.
	CreateCode(ctx context.Context, c auth.Consent) (auth.Secret, error)
	// Redeem and Refresh fail with a fault.Invalid that wraps one of auth's
	// errors of token requests.
	Redeem(ctx context.Context, r auth.Redemption) (auth.Tokens, error)
	Refresh(ctx context.Context, r auth.RefreshRequest) (auth.Tokens, error)
	// RevokeToken revokes the grant of the client's token, if there is one.
	RevokeToken(ctx context.Context, client, token string) error
}

// Options configures a Server.
type Options struct {
	// Issuer is an origin, such as https://satchel.example: where the routes
	// and the pages are.
	Issuer string
	// Resource is what tokens are for, such as https://satchel.example/mcp.
	Resource string
	// Aliases are other URLs of the resource, which clients may name too. For these and for
	// Resource, the forms with a final slash and without a path are accepted too.
	Aliases []string
	// At returns the origin for the host of a request: Issuer, or the origin of an alias. The
	// metadata names this origin, because a client compares the origin with the URL that its
	// user typed. If At is nil, the origin is always Issuer.
	At    func(host string) string
	Store Store
	// HTTP fetches metadata documents. It must dial the public internet alone
	// and follow no redirect (internal/egress). Required with Documents.
	HTTP *http.Client
	// Registration lets clients register themselves.
	Registration bool
	// Documents lets clients name a metadata document that is fetched. The pinned documents
	// of known vendors do not need it.
	Documents bool
	// DocumentCache is the longest time to cache a document; 0 means not at all.
	DocumentCache time.Duration
	// MaxDocuments bounds the cached documents; default 1000.
	MaxDocuments int
	// MaxFetches bounds the concurrent fetches, of which two may go to one host; default 8.
	MaxFetches int
	// DocumentTimeout bounds one fetch; default 5 seconds.
	DocumentTimeout time.Duration
	// MaxDocumentBytes bounds a document; default 64 KiB.
	MaxDocumentBytes int64
	// RetryDocument is the delay before a failed document is fetched again; default 5
	// seconds.
	RetryDocument time.Duration
	// MaxBody bounds the body of a request; default 64 KiB.
	MaxBody int64
	// Limit is called before a request is read; nil means no limit.
	Limit func(r *http.Request, what string) (wait time.Duration, ok bool)
	// Documentation is the URL of a page for developers; may be empty.
	Documentation string
	Logger        *slog.Logger
	Now           func() time.Time
}

func (o Options) withDefaults() Options {
	positive(&o.MaxDocuments, 1000)
	positive(&o.MaxFetches, 8)
	positive(&o.DocumentTimeout, 5*time.Second)
	positive(&o.MaxDocumentBytes, 64<<10)
	positive(&o.RetryDocument, 5*time.Second)
	positive(&o.MaxBody, 64<<10)
	if o.Limit == nil {
		o.Limit = func(*http.Request, string) (time.Duration, bool) { return 0, true }
	}
	if o.At == nil {
		o.At = func(string) string { return o.Issuer }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func positive[T ~int | ~int64](v *T, otherwise T) {
	if *v == 0 {
		*v = otherwise
	}
}

// Server is the authorization server. It is safe for concurrent use.
type Server struct {
	o         Options
	resources map[string]bool // normalised; each stands for o.Resource
	// issuers maps each name of this server to the name of the resource there.
	issuers map[string]string
	docs    *documents
	handler http.Handler
}

// New returns a server; Close ends it.
func New(o Options) (*Server, error) {
	o = o.withDefaults()
	if o.Store == nil {
		return nil, errors.New("oauth: no store")
	}
	if o.Documents && o.HTTP == nil {
		return nil, errors.New("oauth: client documents need an HTTP client")
	}
	issuer, err := url.Parse(o.Issuer)
	if err != nil || issuer.Scheme != "https" && issuer.Scheme != "http" || issuer.Host == "" || o.Issuer != issuer.Scheme+"://"+issuer.Host {
		return nil, fmt.Errorf("oauth: the issuer %q is no origin", o.Issuer)
	}
	s := &Server{o: o, resources: map[string]bool{}, issuers: map[string]string{}}
	for _, r := range append([]string{o.Resource}, o.Aliases...) {
		n, ok := normalResource(r)
		if !ok {
			return nil, fmt.Errorf("oauth: the resource %q is no URL", r)
		}
		s.resources[n] = true
		s.resources[originOf(n)] = true
		s.issuers[originOf(n)] = r
	}
	s.issuers[o.Issuer] = o.Resource
	if o.Documents {
		s.docs = newDocuments(o)
	}
	s.handler = s.routes()
	return s, nil
}

// Close cancels running fetches and waits for them to end.
func (s *Server) Close() {
	if s.docs != nil {
		s.docs.close()
	}
}

// Handler returns the handler for the metadata and for the token, registration and
// revocation endpoints. The caller routes the authorization endpoint and the resource's
// metadata.
func (s *Server) Handler() http.Handler { return s.handler }

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	metadata := s.metadata()
	mux.Handle(PathMetadata, metadata)
	// Clients also look where the resource's path is appended, as if the
	// issuer had it (RFC 8414 section 3.1).
	mux.Handle(PathMetadata+"/mcp", metadata)
	mux.Handle(PathToken, cors(http.MethodPost, s.limited(LimitToken, s.token)))
	mux.Handle(PathRevoke, cors(http.MethodPost, s.limited(LimitToken, s.revoke)))
	if s.o.Registration {
		mux.Handle(PathRegister, cors(http.MethodPost, s.limited(LimitRegister, s.register)))
	} else {
		mux.Handle(PathRegister, cors(http.MethodPost, func(w http.ResponseWriter, _ *http.Request) {
			writeError(w, http.StatusForbidden, "access_denied", "Clients cannot register themselves here. Ask the server's admin for a client id.")
		}))
	}
	return mux
}

// limited calls Options.Limit before the request is read.
func (s *Server) limited(what string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if wait, ok := s.o.Limit(r, what); !ok {
			s.o.Logger.InfoContext(r.Context(), "A client asked too often.", "what", what)
			writeLimited(w, wait, "Too many requests. Try again later.")
			return
		}
		next(w, r)
	}
}
