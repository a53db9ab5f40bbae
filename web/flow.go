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

// FlowKind separates flows: a flow cannot be finished by one of another kind. Other
// kinds are beside their pages.
type FlowKind string

const (
	FlowPasskeySignIn FlowKind = "passkey sign-in"
	FlowPasskeyAdd    FlowKind = "passkey add"
	// flowProvider is followed by the name of the provider.
	FlowProvider FlowKind = "provider "
)

const (
	// flowLifetime is how long a flow can be finished.
	flowLifetime = 10 * time.Minute
	// maxFlows is how many flows of one group a browser may have open at once.
	maxFlows = 8
)

// Prefixes of the cookies of flows. Any link can make a browser begin a sign-in,
// which must not replace a flow that the person began.
const (
	signInCookies = "satchel-signin-"
	flowCookies   = "satchel-flow-"
)

// entering reports whether the kind needs no session.
func (k FlowKind) entering() bool {
	return k == FlowPasskeySignIn || strings.HasPrefix(string(k), string(FlowProvider))
}

func (k FlowKind) group() string {
	if k.entering() {
		return signInCookies
	}
	return flowCookies
}

// Flow is what the server remembers between two requests of one browser, such as a
// visit to another site. The browser that began it has its secret in a cookie, so that
// nobody can have another's browser finish what they began themselves (RFC 6749 section
// 10.12). What its kind needs besides embeds it.
type Flow struct {
	// Session is the ID of the session that began the flow, and the only one that can
	// finish it. Only kinds that need no sign-in can omit it.
	Session string `json:"session,omitempty"`
	// User is who began it, where any session of theirs in this browser may go on:
	// another tab may have signed them in again meanwhile.
	User space.UserID `json:"user,omitempty"`
	Of   []byte       `json:"of"` // flowHash of what it was begun for
	Ends time.Time    `json:"ends"`
}

func (f *Flow) Common() *Flow { return f }

// AnyFlow is a struct that embeds Flow.
type AnyFlow interface{ Common() *Flow }

// flowHash is of what a request must bring to go on with a flow: the state of a visit
// to another site, or what else tells flows of one kind apart, such as the
// name of a tab's; "" where a browser has one of the kind.
func flowHash(kind FlowKind, of string) []byte {
	sum := sha256.Sum256([]byte(string(kind) + "\x00" + of))
	return sum[:]
}

// flowName is the name of the cookie of one flow. It follows from what a request must
// bring, so that one that brings something else, such as a link on another site, finds
// no flow to use up, and flows beside each other stay apart.
func flowName(kind FlowKind, of string) string {
	return kind.group() + hex.EncodeToString(flowHash(kind, of)[:8])
}

// PutFlow keeps a flow, whose secret the caller hands out. One that has no end yet ends
// after the lifetime.
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
		// What is shown once is of an act that was done.
		if !kind.once() {
			if wait, ok := s.begun.Allow(string(v.User.ID)); !ok {
				return auth.Secret{}, &fault.Error{Code: fault.Limited, Public: "You have begun too many things of this kind. Wait a while and try again.", RetryAfter: max(wait, time.Second)}
			}
		}
	}
	data, err := json.Marshal(f)
	if err != nil {
		return auth.Secret{}, fmt.Errorf("flow: %w", err)
	}
	return s.Accounts.PutFlow(v.R.Context(), string(kind), data, c.Ends.Sub(s.Now()))
}

// KeepFlow keeps a flow for this browser, with its secret in a cookie.
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

// boundFlows has the browser forget the oldest flows of a group, which it names first
// (RFC 6265 section 5.4), where another one would be too many. What this request used
// up is none any more.
func (s *Site) boundFlows(v *Visit, group, but string) {
	names := slices.DeleteFunc(s.flowCookies(v, group), func(name string) bool { return name == but || slices.Contains(v.taken, name) })
	for _, name := range names[:max(0, len(names)+1-maxFlows)] {
		s.SetCookie(v.W, name, "", time.Time{})
	}
}

// flowCookies are the names of the cookies of a group, each once.
func (s *Site) flowCookies(v *Visit, group string) []string {
	var names []string
	for _, c := range v.R.Cookies() {
		if name := strings.TrimPrefix(c.Name, s.CookieName("")); strings.HasPrefix(name, group) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// forgetFlows has the browser forget all its flows.
func (s *Site) forgetFlows(v *Visit) {
	for _, group := range [...]string{signInCookies, flowCookies} {
		for _, name := range s.flowCookies(v, group) {
			s.SetCookie(v.W, name, "", time.Time{})
		}
	}
}

// TakeFlow reads a flow of this browser into f, once; ok is false if there is none,
// or it does not belong to this session, and then it stays as it is.
func (s *Site) TakeFlow(v *Visit, kind FlowKind, of string, f AnyFlow) (ok bool, err error) {
	name := flowName(kind, of)
	secret := s.cookie(v.R, name, auth.KindFlow)
	if ok, err = s.TakeFlowOf(v, kind, of, secret, f); ok {
		v.taken = append(v.taken, name)
		s.SetCookie(v.W, name, "", time.Time{})
	}
	return ok, err
}

// SeeFlow is takeFlow for a look that leaves the flow there.
func (s *Site) SeeFlow(v *Visit, kind FlowKind, of string, f AnyFlow) (ok bool, err error) {
	return s.openFlow(v, kind, of, s.cookie(v.R, flowName(kind, of), auth.KindFlow), f, s.Accounts.SeeFlow)
}

// TakeFlowOf takes the flow of a secret, after a look that it belongs to the visit.
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

// StateIn is the state with which another site sends somebody back; ok is false if
// there is none, or more than one.
func StateIn(r *http.Request) (state string, ok bool) {
	all := r.URL.Query()["state"]
	if len(all) != 1 {
		return "", false
	}
	return all[0], all[0] != ""
}

func ErrFlowOver() error {
	return &PageError{Status: http.StatusBadRequest, Title: "This sign-in is over",
		Text: "It took too long, was finished already, or was begun in another browser. Start again."}
}
