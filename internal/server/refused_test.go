package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// refuse has the watch see one refused request.
func refuse(c *refused, address, agent string, status int, body string) {
	r := httptest.NewRequest(http.MethodPost, "/mcp?token=hidden", strings.NewReader("{}"))
	r.Header.Set("User-Agent", agent)
	c.watch(func(*http.Request) string { return address }, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})).ServeHTTP(httptest.NewRecorder(), r)
}

// A person sees what the server last refused to a client at their own address, and an admin what it
// refused to anybody.
func TestRefusedRequests(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c := newRefused(func() time.Time { now = now.Add(time.Second); return now })
	refuse(c, "192.0.2.1", "claude-code/2.0 (cli)", 401, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"This needs a token."}}`)
	refuse(c, "192.0.2.1", "cursor/1", 200, "{}")
	refuse(c, "192.0.2.2", "node", 400, `{"error":"invalid_grant","error_description":"The code was used."}`)
	got := c.of("192.0.2.1", false)
	if len(got) != 1 || got[0].Name != "claude-code/2.0" || got[0].Asked != "POST /mcp" || got[0].Status != 401 || got[0].Why != "This needs a token." {
		t.Errorf("at the address: %+v", got)
	}
	if all := c.of("", true); len(all) != 2 || all[0].Name != "node" || all[0].Why != "The code was used." {
		t.Errorf("an admin sees %+v", all)
	}
	if none := c.of("", false); len(none) != 0 {
		t.Errorf("without an address: %+v", none)
	}
	refuse(c, "192.0.2.1", "claude-code/2.0", 403, "no JSON")
	if got = c.of("192.0.2.1", false); len(got) != 1 || got[0].Status != 403 || got[0].Why != "" {
		t.Errorf("after another: %+v", got)
	}
}

// Attack: clients with names without end, of any length and with control characters, fill no memory,
// and a token in a name is not shown.
func TestAttackRefusedRequests(t *testing.T) {
	c := newRefused(time.Now)
	for i := range maxRefused + 10 {
		refuse(c, "192.0.2.1", fmt.Sprint("client", i), 401, "")
	}
	if n := len(c.of("192.0.2.1", false)); n != maxRefused {
		t.Errorf("%d are kept", n)
	}
	secret := "satchel_" + strings.Repeat("a", 49)
	refuse(c, "192.0.2.1", secret, 401, `{"error":{"message":"`+secret+strings.Repeat("x", 1000)+`"}}`)
	refuse(c, "192.0.2.1", "\x1b[2J"+strings.Repeat("y", 1000), 401, "")
	for _, r := range c.of("192.0.2.1", false)[:2] {
		if len(r.Name) > maxRefusedName || len(r.Why) > maxRefusedWhy || strings.Contains(r.Name+r.Why, "\x1b") || strings.Contains(r.Name+r.Why, secret) {
			t.Errorf("%+v", r)
		}
	}
}
