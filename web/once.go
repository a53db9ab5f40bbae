package web

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
)

// The kinds of flows that show a secret, in the session that made it.
const (
	FlowNewKey     FlowKind = "new key"
	FlowInvitation FlowKind = "new invitation"
	FlowLink       FlowKind = "new link"
)

// once reports whether the kind shows a secret once.
func (k FlowKind) once() bool {
	return k == FlowNewKey || k == FlowInvitation || k == FlowLink
}

// shown is what a page is to show once.
type shown struct {
	Flow
	Body json.RawMessage `json:"body"`
}

// ShowOnce leads from an act to the page that shows its secret once: that page can
// be loaded again without repeating the act. What it shows is sealed with a secret
// that this browser alone has. The address names which it is, so that several tabs
// show each their own; the name tells nothing without the browser's secret.
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

// TakeOnce reads into body what showOnce kept for this session; ok is false if
// that was shown already. A HEAD shows nothing, and uses nothing up.
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
