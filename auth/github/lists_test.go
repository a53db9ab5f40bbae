package github_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/auth/github"
	"satchel/auth/github/githubtest"
	"satchel/internal/fault"
)

func TestAddressesCountOnlyWhereVerifiedAndPrimary(t *testing.T) {
	many := func(last githubtest.Email) (all []githubtest.Email) {
		for i := range 150 {
			all = append(all, githubtest.Email{Email: fmt.Sprintf("n%d@example.org", i), Verified: true})
		}
		return append(all, last)
	}
	for _, c := range []struct {
		name   string
		emails []githubtest.Email
		want   string
	}{
		{"primary and verified", []githubtest.Email{{Email: "a@example.com", Primary: true, Verified: true}}, "a@example.com"},
		{"primary and not verified", []githubtest.Email{{Email: "a@example.com", Primary: true}}, ""},
		{"verified and not primary", []githubtest.Email{{Email: "a@example.com", Verified: true}}, ""},
		{"one of each", []githubtest.Email{{Email: "a@example.com", Verified: true}, {Email: "b@example.com", Primary: true}}, ""},
		{"none", nil, ""},
		{"on the second page", many(githubtest.Email{Email: "z@example.com", Primary: true, Verified: true}), "z@example.com"},
		{"no address", []githubtest.Email{{Email: "a@example.com, b@example.com", Primary: true, Verified: true}}, ""},
		{"an address with a name", []githubtest.Email{{Email: "A <a@example.com>", Primary: true, Verified: true}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t, github.Options{})
			w.github.SignIn(githubtest.Person{ID: 7, Login: "seven", Emails: c.emails})
			who, err := w.signIn(t)
			if err != nil {
				t.Fatal(err)
			}
			if who.Email != c.want || who.Subject != "7" {
				t.Errorf("got %+v, want the address %q", who, c.want)
			}
		})
	}
	t.Run("an app that may not see addresses", func(t *testing.T) {
		for _, status := range []int{403, 404} {
			w := setup(t, github.Options{})
			w.github.Behave(githubtest.Behaviour{Status: map[string]int{"/user/emails": status}, Message: "Resource not accessible by integration"})
			who, err := w.signIn(t)
			if err != nil || who.Email != "" || who.Subject == "" {
				t.Errorf("got %+v, %v", who, err)
			}
			if !strings.Contains(w.log.String(), "does not let this server see") {
				t.Errorf("the log does not say so: %s", w.log)
			}
		}
	})
}

func TestOrganisationsCountOnlyWhereActive(t *testing.T) {
	orgs := []githubtest.Membership{{Org: "invited-to", State: "pending"}}
	var want []string
	for i := range 250 {
		name := fmt.Sprintf("org-%d", i)
		orgs, want = append(orgs, githubtest.Membership{Org: name, State: "active"}), append(want, name)
	}
	for name, b := range map[string]githubtest.Behaviour{
		"three pages":                            {},
		"attack: an invitation is no membership": {IgnoreOrg: true},
		"short pages":                            {PerPage: 40},
	} {
		t.Run(name, func(t *testing.T) {
			w := setup(t, github.Options{NeedOrgs: true})
			w.github.SignIn(githubtest.Person{ID: 7, Login: "seven", Orgs: orgs})
			w.github.Behave(b)
			who, err := w.signIn(t)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(who.GitHubOrgs, want) {
				t.Errorf("got %d organizations: %q", len(who.GitHubOrgs), who.GitHubOrgs)
			}
		})
	}
	t.Run("pages without end are read so far", func(t *testing.T) {
		w := setup(t, github.Options{NeedOrgs: true, MaxPages: 2})
		w.github.SignIn(githubtest.Person{ID: 7, Login: "seven", Orgs: orgs})
		who, err := w.signIn(t)
		if err != nil || len(who.GitHubOrgs) != 200 {
			t.Errorf("got %d organizations, %v", len(who.GitHubOrgs), err)
		}
		if n := w.github.Requests("/user/memberships/orgs"); n != 2 {
			t.Errorf("%d pages were read", n)
		}
	})
	t.Run("an app that may not see organizations lets nobody in by them", func(t *testing.T) {
		w := setup(t, github.Options{NeedOrgs: true})
		w.github.Behave(githubtest.Behaviour{Status: map[string]int{"/user/memberships/orgs": 403}, Message: "Resource not accessible by integration"})
		who, err := w.signIn(t)
		if err != nil || who.GitHubOrgs != nil {
			t.Errorf("got %+v, %v", who, err)
		}
	})
}

func TestTheTokenIsForgotten(t *testing.T) {
	t.Run("revoked though the sign-in failed", func(t *testing.T) {
		w := setup(t, github.Options{})
		w.github.SignIn(githubtest.Person{ID: 1, Login: "gone", Suspended: "2026-01-01T00:00:00Z"})
		_, err := w.signIn(t)
		refused(t, err, fault.Forbidden)
		if good, revoked := w.github.Tokens(); good != 0 || revoked != 1 {
			t.Errorf("%d tokens are good and %d were revoked", good, revoked)
		}
	})
	t.Run("a revocation that fails is logged, without the token", func(t *testing.T) {
		w := setup(t, github.Options{})
		path := "/applications/" + w.github.ClientID() + "/token"
		w.github.Behave(githubtest.Behaviour{Status: map[string]int{path: 500}, Message: "no"})
		if _, err := w.signIn(t); err != nil {
			t.Fatal(err)
		}
		if log := w.log.String(); !strings.Contains(log, "could not be revoked") || strings.Contains(log, "gho_") || strings.Contains(log, w.github.ClientSecret()) {
			t.Errorf("the log is %s", log)
		}
	})
	t.Run("revoked though the person went away", func(t *testing.T) {
		w := setup(t, github.Options{})
		flow, q := w.begin(t)
		ctx, cancel := context.WithCancel(t.Context())
		inner := &http.Transport{DisableKeepAlives: true}
		p, err := github.New(github.Options{URL: w.github.URL, ClientID: w.github.ClientID(), ClientSecret: w.github.ClientSecret(), Transport: leaving{cancel, inner}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Finish(ctx, redirect, flow, q)
		refused(t, err, fault.Canceled)
		if good, revoked := w.github.Tokens(); good != 0 || revoked != 1 {
			t.Errorf("%d tokens are good and %d were revoked", good, revoked)
		}
	})
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, path := range []string{"/login/oauth/access_token", "/user", "/user/emails"} {
		t.Run(path, func(t *testing.T) {
			var followed atomic.Int32
			evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
			t.Cleanup(evil.Close)
			w := setup(t, github.Options{})
			w.github.Behave(githubtest.Behaviour{Status: map[string]int{path: http.StatusTemporaryRedirect}, Header: map[string]http.Header{path: {"Location": {evil.URL}}}})
			_, err := w.signIn(t)
			refused(t, err, fault.Unavailable)
			if n := followed.Load(); n != 0 {
				t.Errorf("%d requests went where it points", n)
			}
		})
	}
}

func TestASlowGitHubTimesOut(t *testing.T) {
	w := setup(t, github.Options{Timeout: 50 * time.Millisecond, RevokeTimeout: 50 * time.Millisecond})
	flow, q := w.begin(t)
	w.github.Behave(githubtest.Behaviour{Stall: make(chan struct{})})
	_, err := w.provider.Finish(t.Context(), redirect, flow, q)
	refused(t, err, fault.Unavailable)
}

// leaving is a transport whose caller leaves when the request for the person is sent.
type leaving struct {
	cancel context.CancelFunc
	inner  *http.Transport
}

func (l leaving) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/user") {
		l.cancel()
	}
	return l.inner.RoundTrip(r)
}
