package web

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
)

// The kinds of flows that show a secret once, in the session that made it.
const (
	FlowNewKey     FlowKind = "new key"
	FlowInvitation FlowKind = "new invitation"
	FlowLink       FlowKind = "new link"
)

// once reports whether flows of the kind show a secret once.
func (k FlowKind) once() bool {
	return k == FlowNewKey || k == FlowInvitation || k == FlowLink
}

// shown is the flow of a page that shows a secret once.
type shown struct {
	Flow
	Body json.RawMessage `json:"body"`
}

// ShowOnce redirects to a page that shows a new secret once, so that reloading the page
// does not repeat the action. The body is sealed with a secret that only this browser
// has. The address contains an ID, so that each tab shows its own secret; the ID is
// useless without the browser's secret.
func (s *Site) ShowOnce(v *Visit, kind FlowKind, path string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("flow: %w", err)
	}
	id := rand.Text()
	if err := s.KeepFlow(v, kind, id, &shown{Body: b}); err != nil {
		return err
	}
	return s.See(v, path+"?once="+id)
}

// TakeOnce reads into body what ShowOnce stored for this session. ok is false if the
// page was shown before. A HEAD request does not count as showing the page.
func (s *Site) TakeOnce(v *Visit, kind FlowKind, body any) (ok bool, err error) {
	if v.R.Method != http.MethodGet {
		return false, nil
	}
	var k shown
	if ok, err := s.TakeFlow(v, kind, v.R.URL.Query().Get("once"), &k); err != nil || !ok {
		return false, err
	}
	if err := json.Unmarshal(k.Body, body); err != nil {
		return false, fmt.Errorf("flow: %w", err)
	}
	return true, nil
}
