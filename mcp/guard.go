package mcp

import (
	"cmp"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// authenticate returns the principal of the request's bearer token, or an error and headers for
// the client.
func (s *Server) authenticate(r *http.Request) (auth.Principal, *rpcError, http.Header) {
	p, err := auth.Authenticate(r.Context(), r, s.o.Verifier)
	switch fault.CodeOf(err) {
	case "":
		return p, nil, nil
	case fault.Unauthenticated:
		if s.o.LimitUnauthenticated != nil {
			if wait, ok := s.o.LimitUnauthenticated(r); !ok {
				// Send the challenge even if others share the client's address: a client
				// whose token has expired must learn where to get a new one.
				header := s.challenge(r, auth.ChallengeOf(err), []space.Scope{space.ScopeRead, space.ScopeWrite})
				header.Set("Retry-After", seconds(wait))
				return p, errorf(codeServer, "Too many requests without a valid token. Try again in %s s.", seconds(wait)).withStatus(http.StatusTooManyRequests), header
			}
		}
		return p, errorf(codeServer, "%s", fault.PublicOf(err)).withStatus(http.StatusUnauthorized),
			s.challenge(r, auth.ChallengeOf(err), []space.Scope{space.ScopeRead, space.ScopeWrite})
	case fault.Forbidden:
		var header http.Header
		if auth.ErrorCode(err) != "" { // the client may ask its user for more scopes
			header = s.challenge(r, auth.ChallengeOf(err), []space.Scope{space.ScopeRead, space.ScopeWrite})
		}
		return p, errorf(codeServer, "%s", fault.PublicOf(err)).withStatus(http.StatusForbidden), header
	case fault.Limited:
		return p, errorf(codeServer, "%s", fault.PublicOf(err)).withStatus(http.StatusTooManyRequests), retryAfter(err)
	case fault.Unavailable:
		s.log(r.Context()).Error("verify token", "error", err)
		return p, errorf(codeServer, "%s", fault.PublicOf(err)).withStatus(http.StatusServiceUnavailable), retryAfter(err)
	default:
		s.log(r.Context()).Error("verify token", "error", err)
		return p, errorf(codeServer, "The token could not be checked. Try again.").withStatus(http.StatusInternalServerError), nil
	}
}

// challenge returns the WWW-Authenticate header of RFC 6750 section 3 with the
// resource_metadata of RFC 9728. Clients learn from it how to sign in.
func (s *Server) challenge(r *http.Request, c auth.Challenge, scopes []space.Scope) http.Header {
	c.Scope = s.o.ScopeNames(scopes)
	if s.o.ResourceMetadataURL != nil {
		c.ResourceMetadata = s.o.ResourceMetadataURL(r)
	}
	return http.Header{"Www-Authenticate": {c.Header()}}
}

func retryAfter(err error) http.Header {
	d := time.Second
	if f, ok := asFault(err); ok {
		d = cmp.Or(f.RetryAfter, d)
	}
	return http.Header{"Retry-After": {seconds(d)}}
}

func seconds(d time.Duration) string {
	return strconv.Itoa(max(1, int((d+time.Second-1)/time.Second)))
}

// limits counts each user's requests, calls and streams.
type limits struct {
	o     Options
	mu    sync.Mutex
	users map[space.UserID]*usage
	swept time.Time
}

type usage struct {
	rate    *rate.Limiter
	calls   int
	streams int
	active  map[*activity]struct{}
	seen    time.Time
}

// activity is a call or a listening stream in progress.
type activity struct {
	p      auth.Principal
	cancel func()
}

// idleUser is how long a user's usage is kept after the last request. Long before that, the
// user's rate limiter allows a full burst again.
const idleUser = 10 * time.Minute

func newLimits(o Options) *limits {
	return &limits{o: o, users: make(map[space.UserID]*usage), swept: o.Now()}
}

func (l *limits) user(id space.UserID) *usage {
	now := l.o.Now()
	u := l.users[id]
	if u == nil {
		if now.Sub(l.swept) > idleUser {
			for id, u := range l.users {
				if u.calls == 0 && u.streams == 0 && now.Sub(u.seen) > idleUser {
					delete(l.users, id)
				}
			}
			l.swept = now
		}
		u = &usage{rate: rate.NewLimiter(rate.Limit(l.o.Rate), l.o.Burst), active: map[*activity]struct{}{}}
		l.users[id] = u
	}
	u.seen = now
	return u
}

// take counts one request. If the user is over the rate, ok is false and wait is how long
// to wait.
func (l *limits) take(id space.UserID) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Now()
	r := l.user(id).rate.ReserveN(now, 1)
	if d := r.DelayFrom(now); d > 0 {
		r.CancelAt(now)
		return d, false
	}
	return 0, true
}

// begin counts a call or a listening stream until the returned function is called. ok is
// false if the user has too many. If the principal loses its access before that, limits.end
// calls cancel.
func (l *limits) begin(p auth.Principal, stream bool, cancel func()) (end func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.user(p.User)
	n, most := &u.calls, l.o.MaxConcurrent
	if stream {
		n, most = &u.streams, l.o.MaxStreams
	}
	if *n >= most {
		return nil, false
	}
	*n++
	a := &activity{p, cancel}
	u.active[a] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		*n--
		delete(u.active, a)
	}, true
}

// inProgress returns the principal of each call and stream. A principal can occur several times.
func (l *limits) inProgress() []auth.Principal {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []auth.Principal
	for _, u := range l.users {
		for a := range u.active {
			out = append(out, a.p)
		}
	}
	return out
}

// end cancels the calls and streams of principals that match.
func (l *limits) end(match func(auth.Principal) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.users {
		for a := range u.active {
			if match(a.p) {
				a.cancel()
			}
		}
	}
}
