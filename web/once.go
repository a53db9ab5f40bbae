package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"satchel/auth"
	"satchel/internal/fault"
)

// The kinds of flows that show a secret.
const (
	flowNewKey  = "new key"
	flowInvited = "new invitation"
)

const shownCookie = "satchel-shown"

// shown is what a page is to show once, in the session that made it.
type shown struct {
	Session string          `json:"session"`
	Body    json.RawMessage `json:"body"`
}

// showOnce leads from an act to the page that shows its secret once: that page can
// be loaded again without repeating the act. What it shows is sealed with a secret
// that this browser alone has.
func (s *Server) showOnce(v *visit, kind, path string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("flow: %w", err)
	}
	data, err := json.Marshal(shown{Session: v.session.ID, Body: b})
	if err != nil {
		return fmt.Errorf("flow: %w", err)
	}
	secret, err := s.o.Accounts.PutFlow(v.r.Context(), kind, data, flowLifetime)
	if err != nil {
		return err
	}
	s.setCookie(v.w, shownCookie, secret.Reveal(), s.now().Add(flowLifetime))
	return s.see(v, path)
}

// takeOnce reads into body what showOnce kept for this session; ok is false where
// that was shown already. A HEAD shows nothing, and uses nothing up.
func (s *Server) takeOnce(v *visit, kind string, body any) (ok bool, err error) {
	secret := s.cookie(v.r, shownCookie, auth.KindFlow)
	if secret == "" || v.r.Method != http.MethodGet {
		return false, nil
	}
	s.setCookie(v.w, shownCookie, "", time.Time{})
	data, err := s.o.Accounts.TakeFlow(v.r.Context(), kind, secret)
	switch fault.CodeOf(err) {
	case "":
	case fault.NotFound, fault.Unauthenticated, fault.Invalid:
		return false, nil
	default:
		return false, err
	}
	var k shown
	if err := json.Unmarshal(data, &k); err != nil {
		return false, fmt.Errorf("flow: %w", err)
	}
	if k.Session != v.session.ID {
		return false, nil
	}
	if err := json.Unmarshal(k.Body, body); err != nil {
		return false, fmt.Errorf("flow: %w", err)
	}
	return true, nil
}
