package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// flowKind is what a flow is of; none is finished with what another began. Those of
// GitHub's App and of what is shown once are beside their pages.
type flowKind string

const (
	flowPasskeySignIn flowKind = "passkey sign-in"
	flowPasskeyAdd    flowKind = "passkey add"
	// flowProvider is followed by the name of the provider.
	flowProvider flowKind = "provider "
)

const (
	// flowLifetime is how long something may take that is under way.
	flowLifetime = 10 * time.Minute
	// maxFlows is how many flows of one group a browser may have open at once.
	maxFlows = 8
)

// The groups of flows, with which the names of their cookies begin. Anybody's link has
// a browser begin a sign-in, which must not take the place of what a person began.
const (
	signInCookies = "satchel-signin-"
	flowCookies   = "satchel-flow-"
)

// entering reports whether the kind is of who need not be signed in.
func (k flowKind) entering() bool {
	return k == flowPasskeySignIn || strings.HasPrefix(string(k), string(flowProvider))
}

func (k flowKind) group() string {
	if k.entering() {
		return signInCookies
	}
	return flowCookies
}

// flow is what the server remembers between two requests of one browser, such as a
// visit to another site. The browser that began it has its secret in a cookie, so that
// nobody can have another's browser finish what they began themselves (RFC 6749 section
// 10.12). What its kind needs besides embeds it.
type flow struct {
	// Session is the id of the one that began it, in which alone it is good then. Only
	// a kind of who need not be signed in may be without.
	Session string `json:"session,omitempty"`
	// User is who began it, where any session of theirs in this browser may go on:
	// another tab may have signed them in again meanwhile.
	User space.UserID `json:"user,omitempty"`
	Of   []byte       `json:"of"` // flowHash of what it was begun for
	Ends time.Time    `json:"ends"`
}

func (f *flow) common() *flow { return f }

// flower is a flow with what its kind needs.
type flower interface{ common() *flow }

// flowHash is of what a request must bring to go on with a flow: the state of a visit
// to another site, or what else tells flows of one kind apart, such as the
// name of a tab's; "" where a browser has one of the kind.
func flowHash(kind flowKind, of string) []byte {
	sum := sha256.Sum256([]byte(string(kind) + "\x00" + of))
	return sum[:]
}

// flowName is the name of the cookie of one flow. It follows from what a request must
// bring, so that one that brings something else, such as a link on another site, finds
// no flow to use up, and flows beside each other stay apart.
func flowName(kind flowKind, of string) string {
	return kind.group() + hex.EncodeToString(flowHash(kind, of)[:8])
}

// putFlow keeps a flow, whose secret the caller hands out. One that has no end yet ends
// after the lifetime.
func (s *Server) putFlow(v *visit, kind flowKind, of string, lifetime time.Duration, f flower) (auth.Secret, error) {
	c := f.common()
	c.Of = flowHash(kind, of)
	if c.Ends.IsZero() {
		c.Ends = s.now().Add(lifetime)
	}
	if !kind.entering() {
		if c.Session = v.session.ID; !v.in || c.Session == "" {
			return auth.Secret{}, errors.New("flow: a " + string(kind) + " is begun without a session")
		}
		if kind == flowPasskeyAdd {
			c.User = v.user.ID
		}
		// What is shown once is of an act that was done.
		if !kind.once() {
			if wait, ok := s.begun.Allow(string(v.user.ID)); !ok {
				return auth.Secret{}, &fault.Error{Code: fault.Limited, Public: "You have begun too many things of this kind. Wait a while and try again.", RetryAfter: max(wait, time.Second)}
			}
		}
	}
	data, err := json.Marshal(f)
	if err != nil {
		return auth.Secret{}, fmt.Errorf("flow: %w", err)
	}
	return s.o.Accounts.PutFlow(v.r.Context(), string(kind), data, c.Ends.Sub(s.now()))
}

// keepFlow keeps a flow for this browser, in a cookie.
func (s *Server) keepFlow(v *visit, kind flowKind, of string, f flower) error {
	secret, err := s.putFlow(v, kind, of, flowLifetime, f)
	if err != nil {
		return err
	}
	name := flowName(kind, of)
	s.boundFlows(v, kind.group(), name)
	s.setCookie(v.w, name, secret.Reveal(), f.common().Ends)
	return nil
}

// boundFlows has the browser forget the oldest flows of a group, which it names first
// (RFC 6265 section 5.4), where another one would be too many. What this request used
// up is none any more.
func (s *Server) boundFlows(v *visit, group, but string) {
	names := slices.DeleteFunc(s.flowCookies(v, group), func(name string) bool { return name == but || slices.Contains(v.taken, name) })
	for _, name := range names[:max(0, len(names)+1-maxFlows)] {
		s.setCookie(v.w, name, "", time.Time{})
	}
}

// flowCookies are the names of the cookies of a group, each once.
func (s *Server) flowCookies(v *visit, group string) []string {
	var names []string
	for _, c := range v.r.Cookies() {
		if name := strings.TrimPrefix(c.Name, s.cookieName("")); strings.HasPrefix(name, group) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// forgetFlows has the browser forget all that it has open.
func (s *Server) forgetFlows(v *visit) {
	for _, group := range [...]string{signInCookies, flowCookies} {
		for _, name := range s.flowCookies(v, group) {
			s.setCookie(v.w, name, "", time.Time{})
		}
	}
}

// takeFlow reads a flow of this browser into f, once; ok is false if there is none,
// or it does not belong to this session, and then it stays as it is.
func (s *Server) takeFlow(v *visit, kind flowKind, of string, f flower) (ok bool, err error) {
	name := flowName(kind, of)
	secret := s.cookie(v.r, name, auth.KindFlow)
	if ok, err = s.takeFlowOf(v, kind, of, secret, f); ok {
		v.taken = append(v.taken, name)
		s.setCookie(v.w, name, "", time.Time{})
	}
	return ok, err
}

// seeFlow is takeFlow for a look that leaves the flow there.
func (s *Server) seeFlow(v *visit, kind flowKind, of string, f flower) (ok bool, err error) {
	return s.openFlow(v, kind, of, s.cookie(v.r, flowName(kind, of), auth.KindFlow), f, s.o.Accounts.SeeFlow)
}

// takeFlowOf takes the flow of a secret, after a look that it belongs to the visit.
func (s *Server) takeFlowOf(v *visit, kind flowKind, of, secret string, f flower) (ok bool, err error) {
	if ok, err = s.openFlow(v, kind, of, secret, f, s.o.Accounts.SeeFlow); err != nil || !ok {
		return false, err
	}
	return s.openFlow(v, kind, of, secret, f, s.o.Accounts.TakeFlow)
}

func (s *Server) openFlow(v *visit, kind flowKind, of, secret string, f flower, open func(ctx context.Context, kind, secret string) ([]byte, error)) (ok bool, err error) {
	if _, _, err := auth.ParseSecret(auth.KindFlow, secret); err != nil {
		return false, nil
	}
	data, err := open(v.r.Context(), string(kind), secret)
	switch fault.CodeOf(err) {
	case "":
	case fault.NotFound, fault.Unauthenticated, fault.Invalid:
		return false, nil
	default:
		return false, err
	}
	if err := json.Unmarshal(data, f); err != nil {
		return false, fmt.Errorf("flow: %w", err)
	}
	c := f.common()
	if subtle.ConstantTimeCompare(c.Of, flowHash(kind, of)) != 1 {
		return false, nil
	}
	if c.Session == "" {
		return kind.entering(), nil
	}
	if kind == flowPasskeyAdd {
		return v.in && c.User == v.user.ID, nil
	}
	return v.in && c.Session == v.session.ID, nil
}

// stateIn is the state with which another site sends somebody back; ok is false if
// there is none, or more than one.
func stateIn(r *http.Request) (state string, ok bool) {
	all := r.URL.Query()["state"]
	if len(all) != 1 {
		return "", false
	}
	return all[0], all[0] != ""
}

func errFlowOver() error {
	return &pageError{status: http.StatusBadRequest, title: "This sign-in is over",
		text: "It took too long, was finished already, or was begun in another browser. Start again."}
}
