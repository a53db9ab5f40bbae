package web

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"

	"satchel/internal/fault"
)

// wantsJSON reports whether a script of these pages sent the request: no form can send
// this content type, and browsers don't let other sites send it.
func wantsJSON(r *http.Request) bool {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && t == "application/json"
}

// JSON answers with JSON.
func (s *Site) JSON(v *Visit, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"Something went wrong."}`)
	}
	v.W.Header().Set("Content-Type", "application/json")
	v.W.WriteHeader(status)
	_, _ = v.W.Write(data) // fails only if the browser is gone
}

// scriptError is the answer to a script whose request failed.
type scriptError struct {
	Error string `json:"error"`
	Stale bool   `json:"stale,omitempty"` // the page must be reloaded
}

// ReadJSON parses the JSON that a script sent.
func ReadJSON(v *Visit, into any) error {
	if !wantsJSON(v.R) {
		return fault.New(fault.Invalid, "This action needs JavaScript.")
	}
	data, err := io.ReadAll(v.R.Body)
	if err != nil {
		return BadForm(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fault.Wrap(err, fault.Invalid, "The request could not be read.")
	}
	return nil
}
