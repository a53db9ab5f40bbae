package oauth

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// protocolError is an error response of RFC 6749 section 5.2 or RFC 7591 section 3.2.2.
type protocolError struct {
	Code        string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

// Error returns the code and the description, for logs.
func (e *protocolError) Error() string { return e.Code + ": " + e.Description }

// writeJSON writes a JSON response that must not be cached (RFC 6749 section 5.1).
func writeJSON(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Pragma", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // fails only if the client has disconnected
}

func writeError(w http.ResponseWriter, status int, code, description string) {
	writeJSON(w, status, protocolError{code, describe(description)})
}

// writeLimited answers 429 Too Many Requests. RFC 6749 defines no error code for this at
// these endpoints. temporarily_unavailable (section 4.1.2.1) is the closest.
func writeLimited(w http.ResponseWriter, wait time.Duration, description string) {
	seconds := max(1, int(math.Ceil(wait.Seconds())))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	writeError(w, http.StatusTooManyRequests, "temporarily_unavailable", description)
}

// describe replaces the characters that an error_description cannot contain (RFC
// 6749 appendix A.8).
func describe(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r < 0x20 || r > 0x7e || r == '\\':
			return '?'
		}
		return r
	}, s)
}

// cors lets pages of any origin call an endpoint with one method. GET includes HEAD. This is
// safe because no such endpoint authenticates by cookie, and Access-Control-Allow-Credentials is
// never sent.
func cors(method string, next http.HandlerFunc) http.Handler {
	allow := method + ", OPTIONS"
	if method == http.MethodGet {
		allow = "GET, HEAD, OPTIONS"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		switch {
		case r.Method == http.MethodOptions:
			h.Set("Allow", allow)
			h.Set("Access-Control-Allow-Methods", allow)
			// A star does not include Authorization (Fetch standard).
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, MCP-Protocol-Version, *")
			h.Set("Access-Control-Max-Age", "86400")
			w.WriteHeader(http.StatusNoContent)
		case r.Method == method, method == http.MethodGet && r.Method == http.MethodHead:
			h.Set("Access-Control-Expose-Headers", "Retry-After, WWW-Authenticate")
			next(w, r)
		default:
			h.Set("Allow", allow)
			writeError(w, http.StatusMethodNotAllowed, "invalid_request", "Use the method "+method+".")
		}
	})
}
