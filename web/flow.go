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

// FlowKind is the kind of a flow. A request of one kind cannot finish a flow of another.
// Further kinds are declared beside their pages.
type FlowKind string

const (
	FlowPasskeySignIn FlowKind = "passkey sign-in"
	FlowPasskeyAdd    FlowKind = "passkey add"
	// FlowProvider is followed by the name of the provider.
	FlowProvider FlowKind = "provider "
)

const (
	// flowLifetime is how long a flow can be finished.
	flowLifetime = 10 * time.Minute
	// maxFlows is how many sign-ins, and how many other flows, a browser may have open at once.
	maxFlows = 8
)

// Prefixes of the cookies of flows. Sign-ins have their own prefix, because any link can make a
// browser begin a sign-in. Such a sign-in must not push out a flow that the person began.
const (
	signInCookies = "satchel-signin-"
	flowCookies   = "satchel-flow-"
)

// entering reports whether flows of the kind sign somebody in and so need no session.
func (k FlowKind) entering() bool {
	return k == FlowPasskeySignIn || strings.HasPrefix(string(k), string(FlowProvider))
}

func (k FlowKind) group() string {
	if k.entering() {
		return signInCookies
	}
	return flowCookies
}

// Flow is what the server remembers between two requests of a browser, for example during
// a visit to another site. The browser has the flow's secret in a cookie, so that nobody
// can make another browser finish a flow that they began (RFC 6749 section 10.12). The
// struct of a kind that needs more data embeds Flow.
type Flow struct {
	// Session is the ID of the session that began the flow. Unless User is set, no other session
	// can finish the flow. Only kinds that need no sign-in can omit Session.
	Session string `json:"session,omitempty"`
	// User is set if any session of this user in this browser can finish the flow: another
	// tab may have started a new session meanwhile.
	User space.UserID `json:"user,omitempty"`
	Of   []byte       `json:"of"` // flowHash of the flow's state or name
	Ends time.Time    `json:"ends"`
}

func (f *Flow) Common() *Flow { return f }

// AnyFlow is a struct that embeds Flow.
type AnyFlow interface{ Common() *Flow }

// flowHash hashes what a request must bring to continue a flow: the state of a visit to
// another site, or a name that distinguishes flows of the kind. of is "" if a browser has
// at most one flow of the kind.
func flowHash(kind FlowKind, of string) []byte {
	sum := sha256.Sum256([]byte(string(kind) + "\x00" + of))
	return sum[:]
}

// flowName returns the name of a flow's cookie. It is derived from what a request must
// bring, so that flows stay separate, and a request that brings something else, such as a
// link on another site, uses up no flow.
func flowName(kind FlowKind, of string) string {
	return kind.group() + hex.EncodeToString(flowHash(kind, of)[:8])
}

// PutFlow stores a flow and returns its secret. A flow without an end ends after lifetime.
func (s *Site) PutFlow(v *Visit, kind FlowKind, of string, lifetime time.Duration, f AnyFlow) (auth.Secret, error) {
	c := f.Common()
	c.Of = flowHash(kind, of)
	if c.Ends.IsZero() {
		c.Ends = s.Now().Add(lifetime)
	}
	if !kind.entering() {
		if c.Session = v.Session.ID; !v.In || c.Session == "" {
			return auth.Secret{}, errors.New("flow: a " + string(kind) + " is begun without a session")
		}
		if kind == FlowPasskeyAdd {
			c.User = v.User.ID
		}
		// Flows that show a secret once are not limited, because the secret exists already.
		if !kind.once() {
			if wait, ok := s.begun.Allow(string(v.User.ID)); !ok {
				return auth.Secret{}, &fault.Error{Code: fault.Limited, Public: "You have started this too often. Wait a while and try again.", RetryAfter: max(wait, time.Second)}
			}
		}
	}
	data, err := json.Marshal(f)
	if err != nil {
		return auth.Secret{}, fmt.Errorf("flow: %w", err)
	}
	return s.Accounts.PutFlow(v.R.Context(), string(kind), data, c.Ends.Sub(s.Now()))
}

// KeepFlow stores a flow and puts its secret into a cookie.
func (s *Site) KeepFlow(v *Visit, kind FlowKind, of string, f AnyFlow) error {
	secret, err := s.PutFlow(v, kind, of, flowLifetime, f)
	if err != nil {
		return err
	}
	name := flowName(kind, of)
	s.boundFlows(v, kind.group(), name)
	s.SetCookie(v.W, name, secret.Reveal(), f.Common().Ends)
	return nil
}

// boundFlows deletes the cookies of the oldest flows of a group, so that there is room for a new
// flow. but is the name of the new flow's cookie. Browsers send the oldest cookies first (RFC 6265
// section 5.4). Flows that this request has used up do not count.
func (s *Site) boundFlows(v *Visit, group, but string) {
	names := slices.DeleteFunc(s.flowCookies(v, group), func(name string) bool { return name == but || slices.Contains(v.taken, name) })
	for _, name := range names[:max(0, len(names)+1-maxFlows)] {
		s.SetCookie(v.W, name, "", time.Time{})
	}
}

// flowCookies returns the distinct names of the cookies of a group.
func (s *Site) flowCookies(v *Visit, group string) []string {
	var names []string
	for _, c := range v.R.Cookies() {
		if name := strings.TrimPrefix(c.Name, s.CookieName("")); strings.HasPrefix(name, group) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// forgetFlows deletes the cookies of all flows.
func (s *Site) forgetFlows(v *Visit) {
	for _, group := range [...]string{signInCookies, flowCookies} {
		for _, name := range s.flowCookies(v, group) {
			s.SetCookie(v.W, name, "", time.Time{})
		}
	}
}

// TakeFlow reads a flow of this browser into f and ends the flow. ok is false if there is no such
// flow, or if it belongs to another session. TakeFlow does not end the flow of another session.
func (s *Site) TakeFlow(v *Visit, kind FlowKind, of string, f AnyFlow) (ok bool, err error) {
	name := flowName(kind, of)
	secret := s.cookie(v.R, name, auth.KindFlow)
	if ok, err = s.TakeFlowOf(v, kind, of, secret, f); ok {
		v.taken = append(v.taken, name)
		s.SetCookie(v.W, name, "", time.Time{})
	}
	return ok, err
}

// SeeFlow is TakeFlow without ending the flow.
func (s *Site) SeeFlow(v *Visit, kind FlowKind, of string, f AnyFlow) (ok bool, err error) {
	return s.openFlow(v, kind, of, s.cookie(v.R, flowName(kind, of), auth.KindFlow), f, s.Accounts.SeeFlow)
}

// TakeFlowOf is like TakeFlow, for the flow with the secret. The secret need not be in a cookie,
// and TakeFlowOf deletes no cookie.
func (s *Site) TakeFlowOf(v *Visit, kind FlowKind, of, secret string, f AnyFlow) (ok bool, err error) {
	if ok, err = s.openFlow(v, kind, of, secret, f, s.Accounts.SeeFlow); err != nil || !ok {
		return false, err
	}
	return s.openFlow(v, kind, of, secret, f, s.Accounts.TakeFlow)
}

func (s *Site) openFlow(v *Visit, kind FlowKind, of, secret string, f AnyFlow, open func(ctx context.Context, kind, secret string) ([]byte, error)) (ok bool, err error) {
	if _, _, err := auth.ParseSecret(auth.KindFlow, secret); err != nil {
		return false, nil
	}
	data, err := open(v.R.Context(), string(kind), secret)
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
	c := f.Common()
	if subtle.ConstantTimeCompare(c.Of, flowHash(kind, of)) != 1 {
		return false, nil
	}
	if c.Session == "" {
		return kind.entering(), nil
	}
	if kind == FlowPasskeyAdd {
		return v.In && c.User == v.User.ID, nil
	}
	return v.In && c.Session == v.Session.ID, nil
}

// StateIn returns the state that another site sent back. ok is false unless there is
// exactly one.
func StateIn(r *http.Request) (state string, ok bool) {
	all := r.URL.Query()["state"]
	if len(all) != 1 {
		return "", false
	}
	return all[0], all[0] != ""
}

func ErrFlowOver() error {
	return &PageError{Status: http.StatusBadRequest, Title: "This sign-in has ended",
		Text: "It took too long, is already finished, or was started in another browser. Start again."}
}
