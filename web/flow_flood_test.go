package web_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"satchel/web"
)

// Attack: a signed-in person begins endless visits to GitHub, which last longer than
// sign-ins and could take their place. The browser need not store the cookies, and there
// may be many browsers.
func TestAttackVisitsWithoutEnd(t *testing.T) {
	h := newHubWorld(t)
	begin := func(b *browser) answer {
		for name := range b.flows() {
			delete(b.cookies, name)
		}
		return b.send(h.path+"/install", nil)
	}
	taken := 0
	for range 2 {
		b := h.as(h.ada)
		for range 200 {
			switch a := begin(b); a.StatusCode {
			case http.StatusOK: // which leads to GitHub
				taken++
			case http.StatusTooManyRequests:
				if a.Header.Get("Retry-After") == "" {
					t.Fatal("it is not said when to come again")
				}
			default:
				t.Fatal(a.StatusCode, a.body)
			}
		}
	}
	if taken != web.DefaultFlowRate/2 {
		t.Errorf("%d were begun, not %d", taken, web.DefaultFlowRate/2)
	}
	eve := h.as(h.eve)
	want(t, "somebody else's", eve.send(fmt.Sprintf("/spaces/%s/github/install", h.evil.ID), nil), http.StatusOK)
	want(t, "a page", h.as(h.ada).get("/spaces/"+string(h.space.ID)), http.StatusOK)
	h.pass(time.Minute)
	want(t, "later", begin(h.as(h.ada)), http.StatusOK)
}
