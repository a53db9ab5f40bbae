package apptest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestDifferencesFromGitHubAreFound checks the checker, which every test of the App relies on.
func TestDifferencesFromGitHubAreFound(t *testing.T) {
	c, err := loadChecker()
	if err != nil {
		t.Fatal(err)
	}
	const tokens, made = "/app/installations/1/access_tokens", `{"token":"x","expires_at":"2020-01-01T00:00:00Z"}`
	for name, tt := range map[string]struct {
		method, path, body string
		status             int
		answer, want       string
	}{
		"good":                        {"POST", tokens, `{"repository_ids":[1]}`, 201, made, ""},
		"answer that only has more":   {"POST", tokens, `{}`, 201, made[:len(made)-1] + `,"more":1}`, ""},
		"level that does not exist":   {"POST", tokens, `{"permissions":{"contents":"admin"}}`, 201, made, "request:"},
		"ids that are text":           {"POST", tokens, `{"repository_ids":["1"]}`, 201, made, "request:"},
		"answer without a field":      {"POST", tokens, `{}`, 201, `{"token":"x"}`, "expires_at"},
		"answer of another type":      {"POST", tokens, `{}`, 201, `{"token":7,"expires_at":"2020-01-01T00:00:00Z"}`, "token"},
		"body where none is allowed":  {"GET", "/app", `{"a":"b"}`, 401, `{"message":"Bad credentials"}`, ""},
		"error without a message":     {"GET", "/app/installations/1", "", 403, `{"message":7}`, "message"},
		"operation that GitHub lacks": {"GET", "/app/nothing", "", 200, `{}`, "no such operation"},
	} {
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/json")
		found := strings.Join(c.check(r, []byte(tt.body), tt.status, http.Header{"Content-Type": {"application/json; charset=utf-8"}}, []byte(tt.answer)), "\n")
		if (found == "") != (tt.want == "") || !strings.Contains(found, tt.want) {
			t.Errorf("%s: %q, not %q", name, found, tt.want)
		}
	}
}
