package apptest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

func unmarshal(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("apptest: %w", err)
	}
	return nil
}

// control is how another process says what happens in the world: POST
// /_control/NAME with the arguments as JSON, and GET /_violations.
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/_violations":
		reply(w, http.StatusOK, object{"violations": append([]string{}, s.Violations()...)})
		return
	case "/_requests":
		reply(w, http.StatusOK, object{"requests": append([]Request{}, s.Requests()...)})
		return
	}
	http.NotFound(w, r)
}
