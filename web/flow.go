package web

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"satchel/auth"
	"satchel/internal/fault"
)

// flowLifetime is how long a sign-in may take that is under way.
const flowLifetime = 10 * time.Minute

// The kinds of flows.
const (
	flowPasskeySignIn = "passkey sign-in"
	flowPasskeyAdd    = "passkey add"
	// flowProvider is followed by the name of the provider, so that none is
	// finished with what another began.
	flowProvider = "provider "
)

// What a flow with a provider is for.
const (
	useSignIn = "sign in"
	useLink   = "link"
	useJoin   = "join"
)

// flow is what the server remembers of a sign-in between its beginning and its
// end. The browser that began it has its secret in a cookie, so that nobody can
// have another's browser finish what they began themselves (RFC 6749 section
// 10.12).
type flow struct {
	Use   string `json:"use,omitempty"`
	State []byte `json:"state,omitempty"` // SHA-256 of what the provider returns
	Data  []byte `json:"data"`            // the provider's own

	Return string `json:"return,omitempty"`
	// Session is the id of the one that began it, where it is about that person.
	Session string `json:"session,omitempty"`
	// Invitation and Name are of who joins.
	Invitation string `json:"invitation,omitempty"`
	Name       string `json:"name,omitempty"`
}

// keepFlow remembers a flow for this browser.
func (s *Server) keepFlow(v *visit, kind string, f flow) error {
	data, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("flow: %w", err)
	}
	secret, err := s.o.Accounts.PutFlow(v.r.Context(), kind, data, flowLifetime)
	if err != nil {
		return err
	}
	s.setCookie(v.w, flowCookie, secret.Reveal(), s.now().Add(flowLifetime))
	return nil
}

// takeFlow returns this browser's flow, once.
func (s *Server) takeFlow(v *visit, kind string) (flow, error) {
	secret := s.cookie(v.r, flowCookie, auth.KindFlow)
	if secret == "" {
		return flow{}, errFlowOver()
	}
	s.setCookie(v.w, flowCookie, "", time.Time{})
	data, err := s.o.Accounts.TakeFlow(v.r.Context(), kind, secret)
	switch fault.CodeOf(err) {
	case "":
	case fault.NotFound, fault.Unauthenticated, fault.Invalid:
		return flow{}, errFlowOver()
	default:
		return flow{}, err
	}
	var f flow
	if err := json.Unmarshal(data, &f); err != nil {
		return flow{}, fmt.Errorf("flow: %w", err)
	}
	if f.Session != "" && (!v.in || v.session.ID != f.Session) {
		return flow{}, errFlowOver()
	}
	return f, nil
}

func errFlowOver() error {
	return &pageError{status: http.StatusBadRequest, title: "This sign-in is over",
		text: "It took too long, was finished already, or was begun in another browser. Start again."}
}

func hashState(state string) []byte {
	sum := sha256.Sum256([]byte(state))
	return sum[:]
}
