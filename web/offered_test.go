package web_test

import (
	"net/http"
	"strings"
	"testing"

	"satchel/web"
)

// fickleProvider is a provider that is not always available.
type fickleProvider struct {
	fakeProvider
	ready bool
}

func (p *fickleProvider) Ready() bool { return p.ready }

func TestAProviderIsOfferedWhileItIsReady(t *testing.T) {
	p := &fickleProvider{fakeProvider: fakeProvider{label: "GitHub"}}
	w := newWorld(t, func(o *web.Options) { o.GitHub = p })
	for _, ready := range []bool{false, true, false} {
		p.ready = ready
		if got := strings.Contains(w.browser().get("/signin").body, "/signin/github"); got != ready {
			t.Errorf("ready is %t, and that it is offered is %t", ready, got)
		}
		a := w.as(w.ada).get("/account")
		want(t, "the account", a, http.StatusOK)
		if got := strings.Contains(a.body, "/account/link/github"); got != ready {
			t.Errorf("ready is %t, and that it can be linked is %t", ready, got)
		}
	}
}
