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

// The paths of the server, relative to the issuer.
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
	LimitToken    = "token" // also for revocation
	LimitMetadata = "metadata"
)

// Store stores clients, codes and tokens. It does all checks of a code or a token: its
// client, its redirect and its expiry, and that the person still has the right.
type Store interface {
	// Client returns a client that registered itself or that an admin created. The error is
	// a fault.NotFound for others.
	Client(ctx context.Context, id string) (auth.Client, error)
	// RegisterClient stores a client. The error is a fault.Limited if there are too many.
	RegisterClient(ctx context.Context, c auth.Client) error
	// CreateCode returns a fresh authorization code.
	CreateCode(ctx context.Context, c auth.Consent) (auth.Secret, error)
	// Redeem and Refresh exchange a code or a refresh token for tokens. If a request is refused,
	// the error is a fault.Invalid that wraps auth.ErrInvalidGrant, auth.ErrInvalidTarget or
	// auth.ErrInvalidScope.
	Redeem(ctx context.Context, r auth.Redemption) (auth.Tokens, error)
	Refresh(ctx context.Context, r auth.RefreshRequest) (auth.Tokens, error)
	// RevokeToken revokes the grant of the client's token, if there is one.
	RevokeToken(ctx context.Context, client, token string) error
}

// Options configures a Server.
type Options struct {
	// Issuer is the origin of the routes and the pages, such as https://satchel.example.
	Issuer string
	// Resource is the URL for which tokens are valid, such as https://satchel.example/mcp.
	Resource string
	// Aliases are other URLs of the resource that clients may name. For these and for
	// Resource, the forms with a final slash and without a path are accepted too.
	Aliases []string
	// At returns the origin for the host of a request: Issuer, or the origin of an alias.
	// The metadata names this origin, because a client compares the origin with the URL
	// that its user typed. If At is nil, the origin is always Issuer.
	At    func(host string) string
	Store Store
	// HTTP fetches metadata documents. It must connect only to the public internet, and
	// follow no redirect (internal/egress). It is required with Documents.
	HTTP *http.Client
	// Registration lets clients register themselves.
	Registration bool
	// Documents lets a client name a metadata document for the server to fetch. The pinned
	// documents of known vendors do not need it.
	Documents bool
	// DocumentCache is the longest time to cache a document. Zero turns the cache off.
	DocumentCache time.Duration
	// MaxDocuments is the maximum number of cached documents. The default is 1000.
	MaxDocuments int
	// MaxFetches is the maximum number of concurrent fetches. At most two of them go to one
	// host. The default is 8.
	MaxFetches int
	// DocumentTimeout is the maximum time of one fetch. The default is 5 seconds.
	DocumentTimeout time.Duration
	// MaxDocumentBytes is the maximum size of a document. The default is 64 KiB.
	MaxDocumentBytes int64
	// RetryDocument is the delay before a failed document is fetched again. The default is
	// 5 seconds.
	RetryDocument time.Duration
	// MaxBody is the maximum size of a request's body in bytes. The default is 64 KiB.
	MaxBody int64
	// Limit is called before a request is read. what is one of the constants LimitRegister,
	// LimitToken and LimitMetadata. Nil means no limit.
	Limit func(r *http.Request, what string) (wait time.Duration, ok bool)
	// Documentation is the URL of a page for developers. It may be empty.
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
	resources map[string]bool // normalized; each means o.Resource
	// issuers holds the resource for each origin of this server.
	issuers map[string]string
	docs    *documents
	handler http.Handler
}

// New returns a server. Close ends it.
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
		return nil, fmt.Errorf("oauth: the issuer %q is not an origin", o.Issuer)
	}
	s := &Server{o: o, resources: map[string]bool{}, issuers: map[string]string{}}
	for _, r := range append([]string{o.Resource}, o.Aliases...) {
		n, ok := normalResource(r)
		if !ok {
			return nil, fmt.Errorf("oauth: the resource %q is not a URL", r)
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

// Handler returns the handler for the metadata and for the token, registration and revocation
// endpoints. The caller routes the authorization endpoint and the resource's metadata.
func (s *Server) Handler() http.Handler { return s.handler }

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	metadata := s.metadata()
	mux.Handle(PathMetadata, metadata)
	// Some clients append the resource's path, as if the issuer had this path (RFC 8414 section
	// 3.1).
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
