package github_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/auth"
	"satchel/auth/github"
	"satchel/auth/github/githubtest"
	"satchel/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const redirect = "https://satchel.example/signin/github/callback"

type world struct {
	github   *githubtest.Server
	provider *github.Provider
	log      *bytes.Buffer
}

func setup(t *testing.T, options github.Options) *world {
	t.Helper()
	w := &world{github: githubtest.New(githubtest.Options{Callback: "https://satchel.example/"}), log: &bytes.Buffer{}}
	t.Cleanup(w.github.Close)
	options.URL, options.ClientID = w.github.URL, w.github.ClientID()
	if options.ClientSecret == "" {
		options.ClientSecret = w.github.ClientSecret()
	}
	options.Logger = slog.New(slog.NewTextHandler(w.log, nil))
	var err error
	if w.provider, err = github.New(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.provider.Close)
	return w
}

func (w *world) begin(t *testing.T) (flow []byte, q url.Values) {
	t.Helper()
	location, flow, err := w.provider.Begin(t.Context(), redirect, "the-state")
	if err != nil {
		t.Fatal(err)
	}
	if q, err = w.github.Browse(location); err != nil {
		t.Fatal(err)
	}
	return flow, q
}

func (w *world) signIn(t *testing.T) (auth.ExternalIdentity, error) {
	t.Helper()
	flow, q := w.begin(t)
	return w.provider.Finish(t.Context(), redirect, flow, q)
}

func refused(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("got %v (%s), want a fault of %s", err, fault.CodeOf(err), code)
	}
	if p := fault.PublicOf(err); strings.Contains(p, "SECRET-DETAIL") || !strings.HasSuffix(p, ".") {
		t.Errorf("the public message is %q", p)
	}
}

func TestSignsIn(t *testing.T) {
	for _, c := range []struct {
		name     string
		options  github.Options
		wantOrgs []string
	}{
		{name: "without organizations"},
		{name: "with organizations", options: github.Options{NeedOrgs: true}, wantOrgs: []string{"octo-org"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t, c.options)
			who, err := w.signIn(t)
			if err != nil {
				t.Fatal(err)
			}
			if who.Issuer != w.github.URL || who.Subject != "583231" || who.Login != "octocat" || who.GitHubLogin != "octocat" ||
				who.Name != "The Octocat" || who.Email != "octocat@example.com" || !slices.Equal(who.GitHubOrgs, c.wantOrgs) {
				t.Errorf("got %+v", who)
			}
			if good, revoked := w.github.Tokens(); good != 0 || revoked != 1 {
				t.Errorf("%d tokens are good and %d were revoked", good, revoked)
			}
			if n := w.github.Requests("/user/memberships/orgs"); n != len(c.wantOrgs) {
				t.Errorf("the organizations were asked for %d times", n)
			}
		})
	}
}

func TestBeginAsksForWhatItMust(t *testing.T) {
	for needOrgs, scope := range map[bool]string{false: "user:email", true: "user:email read:org"} {
		w := setup(t, github.Options{NeedOrgs: needOrgs})
		location, flow, err := w.provider.Begin(t.Context(), redirect, "st&te")
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(location)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		for name, want := range map[string]string{
			"client_id": w.github.ClientID(), "redirect_uri": redirect, "state": "st&te", "scope": scope, "code_challenge_method": "S256",
		} {
			if q.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, q.Get(name), want)
			}
		}
		if !strings.HasPrefix(location, w.github.URL+"/login/oauth/authorize?") || len(q.Get("code_challenge")) != 43 {
			t.Errorf("the location is %s", location)
		}
		if strings.Contains(location, w.github.ClientSecret()) || bytes.Contains(flow, []byte(w.github.ClientSecret())) {
			t.Error("the location or the flow has the client's secret")
		}
	}
}

func TestWhereTheAPIIs(t *testing.T) {
	for base, want := range map[string]string{
		"":                               "https://api.github.com/user",
		"https://github.com":             "https://api.github.com/user",
		"https://github.com/":            "https://api.github.com/user",
		"https://GitHub.com":             "https://api.github.com/user",
		"https://octo.ghe.com":           "https://api.octo.ghe.com/user",
		"https://github.example.com":     "https://github.example.com/api/v3/user",
		"https://evilgithub.com":         "https://evilgithub.com/api/v3/user",
		"https://example.com/github.com": "https://example.com/github.com/api/v3/user",
	} {
		t.Run(base, func(t *testing.T) {
			var asked []string
			p, err := github.New(github.Options{URL: base, ClientID: "c", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				asked = append(asked, r.URL.String())
				if r.Method == http.MethodPost {
					return answer(200, `{"access_token":"gho_x","token_type":"bearer"}`), nil
				}
				return answer(503, ""), nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			_, flow, err := p.Begin(t.Context(), redirect, "s")
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Finish(t.Context(), redirect, flow, url.Values{"state": {"s"}, "code": {"c"}})
			refused(t, err, fault.Unavailable)
			if base == "https://GitHub.com" && asked[0] != "https://github.com/login/oauth/access_token" {
				t.Errorf("its address is %q", asked[0])
			}
			if len(asked) != 2 || asked[1] != want {
				t.Errorf("it asked %q", asked)
			}
		})
	}
	for name, o := range map[string]github.Options{
		"no client":              {URL: "https://github.com"},
		"http elsewhere":         {URL: "http://github.com", ClientID: "c"},
		"a user in it":           {URL: "https://a@github.com", ClientID: "c"},
		"no host":                {URL: "https://", ClientID: "c"},
		"an API without TLS":     {API: "http://api.github.com", ClientID: "c"},
		"a query in the address": {URL: "https://github.com?x", ClientID: "c"},
	} {
		if _, err := github.New(o); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type body struct{ *strings.Reader }

func (body) Close() error { return nil }

func answer(status int, text string) *http.Response {
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: body{strings.NewReader(text)}}
}

func TestCallbackAttacks(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(url.Values)
	}{
		{"login CSRF: another state", func(q url.Values) { q.Set("state", "another") }},
		{"no state", func(q url.Values) { q.Del("state") }},
		{"an error with another state", func(q url.Values) { q.Set("state", "x"); q.Set("error", "access_denied") }},
		{"two codes", func(q url.Values) { q.Add("code", "another") }},
		{"two states", func(q url.Values) { q.Add("state", "the-state") }},
		{"no code with a good state", func(q url.Values) { q.Del("code") }},
		{"a code without end", func(q url.Values) { q.Set("code", strings.Repeat("a", 10_000)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t, github.Options{})
			flow, q := w.begin(t)
			c.edit(q)
			_, err := w.provider.Finish(t.Context(), redirect, flow, q)
			refused(t, err, fault.Invalid)
			if n := w.github.Requests("/login/oauth/access_token"); n != 0 {
				t.Errorf("the code was shown %d times", n)
			}
		})
	}
	t.Run("another person's code: PKCE", func(t *testing.T) {
		w := setup(t, github.Options{})
		_, theirs := w.begin(t)
		mine, _ := w.begin(t)
		_, err := w.provider.Finish(t.Context(), redirect, mine, theirs)
		refused(t, err, fault.Invalid)
	})
	t.Run("a code twice", func(t *testing.T) {
		w := setup(t, github.Options{})
		flow, q := w.begin(t)
		if _, err := w.provider.Finish(t.Context(), redirect, flow, q); err != nil {
			t.Fatal(err)
		}
		_, err := w.provider.Finish(t.Context(), redirect, flow, q)
		refused(t, err, fault.Invalid)
	})
	t.Run("a made up code", func(t *testing.T) {
		w := setup(t, github.Options{})
		flow, q := w.begin(t)
		q.Set("code", "made-up")
		_, err := w.provider.Finish(t.Context(), redirect, flow, q)
		refused(t, err, fault.Invalid)
	})
	t.Run("another redirect URI", func(t *testing.T) {
		w := setup(t, github.Options{})
		flow, q := w.begin(t)
		_, err := w.provider.Finish(t.Context(), redirect+"/", flow, q)
		refused(t, err, fault.Invalid)
	})
	t.Run("a flow that is no flow", func(t *testing.T) {
		w := setup(t, github.Options{})
		for _, f := range []string{"", "{}", "null", "[]", `{"github":"https://evil.example","verifier":"v"}`, strings.Repeat("{", 10_000)} {
			_, err := w.provider.Finish(t.Context(), redirect, []byte(f), url.Values{"state": {""}, "code": {"x"}})
			refused(t, err, fault.Invalid)
		}
	})
	t.Run("a flow of another GitHub", func(t *testing.T) {
		w, other := setup(t, github.Options{}), setup(t, github.Options{})
		flow, q := w.begin(t)
		_, err := other.provider.Finish(t.Context(), redirect, flow, q)
		refused(t, err, fault.Invalid)
		if n := other.github.Requests("/login/oauth/access_token"); n != 0 {
			t.Errorf("the code was shown %d times", n)
		}
	})
}

// padded returns an object that is longer than the tests allow.
func padded(fields string) string {
	return "{" + fields + `,"padding":"` + strings.Repeat("0", 100<<10) + `"}`
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name      string
		behaviour githubtest.Behaviour
		options   github.Options
		code      fault.Code
	}{
		{name: "the person says no", behaviour: githubtest.Behaviour{Refuse: "access_denied"}, code: fault.Forbidden},
		{name: "the app is suspended", behaviour: githubtest.Behaviour{Refuse: "application_suspended"}, code: fault.Unavailable},
		{name: "another callback than the app's", behaviour: githubtest.Behaviour{Refuse: "redirect_uri_mismatch"}, code: fault.Unavailable},
		{name: "200 and the code is over", behaviour: githubtest.Behaviour{TokenError: "bad_verification_code"}, code: fault.Invalid},
		{name: "200 and no verified address", behaviour: githubtest.Behaviour{TokenError: "unverified_user_email"}, code: fault.Forbidden},
		{name: "200 and another error", behaviour: githubtest.Behaviour{TokenError: "incorrect_client_credentials"}, code: fault.Unavailable},
		{name: "another secret", options: github.Options{ClientSecret: "wrong"}, code: fault.Unavailable},
		{name: "200 and nothing", behaviour: githubtest.Behaviour{Body: map[string]string{"/login/oauth/access_token": "{}"}}, code: fault.Unavailable},
		{name: "200 and no JSON", behaviour: githubtest.Behaviour{Body: map[string]string{"/login/oauth/access_token": "<html>"}}, code: fault.Unavailable},
		{name: "200 and another kind of token", behaviour: githubtest.Behaviour{Body: map[string]string{"/login/oauth/access_token": `{"access_token":"x","token_type":"mac"}`}}, code: fault.Unavailable},
		{name: "a person without id", behaviour: githubtest.Behaviour{Body: map[string]string{"/user": `{"login":"octocat"}`}}, code: fault.Unavailable},
		{name: "a person whose id is no number", behaviour: githubtest.Behaviour{Body: map[string]string{"/user": `{"id":"1","login":"octocat"}`}}, code: fault.Unavailable},
		{name: "a negative id", behaviour: githubtest.Behaviour{Body: map[string]string{"/user": `{"id":-1,"login":"octocat"}`}}, code: fault.Unavailable},
		{name: "suspended, as GitHub says it", behaviour: githubtest.Behaviour{Status: map[string]int{"/user": 403}, Message: "Sorry. Your account was suspended."}, code: fault.Forbidden},
		{name: "the token is no good already", behaviour: githubtest.Behaviour{Status: map[string]int{"/user": 401}, Message: "Bad credentials SECRET-DETAIL"}, code: fault.Invalid},
		{name: "forbidden for another reason", behaviour: githubtest.Behaviour{Status: map[string]int{"/user": 403}, Message: "SECRET-DETAIL"}, code: fault.Unavailable},
		{name: "down", behaviour: githubtest.Behaviour{Status: map[string]int{"/login/oauth/access_token": 502}, Message: "SECRET-DETAIL"}, code: fault.Unavailable},
		{name: "the API is down", behaviour: githubtest.Behaviour{Status: map[string]int{"/user": 500}}, code: fault.Unavailable},
		{name: "the addresses are down", behaviour: githubtest.Behaviour{Status: map[string]int{"/user/emails": 500}}, code: fault.Unavailable},
		{name: "the organizations are down", options: github.Options{NeedOrgs: true}, behaviour: githubtest.Behaviour{Status: map[string]int{"/user/memberships/orgs": 503}}, code: fault.Unavailable},
		{name: "an oversized token response", behaviour: githubtest.Behaviour{Body: map[string]string{"/login/oauth/access_token": padded(`"access_token":"gho_x","token_type":"bearer"`)}}, options: github.Options{MaxResponse: 64 << 10}, code: fault.Unavailable},
		{name: "an oversized person", behaviour: githubtest.Behaviour{Body: map[string]string{"/user": padded(`"id":1,"login":"octocat"`)}}, options: github.Options{MaxResponse: 64 << 10}, code: fault.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t, c.options)
			w.github.Behave(c.behaviour)
			flow, q := w.begin(t)
			who, err := w.provider.Finish(t.Context(), redirect, flow, q)
			refused(t, err, c.code)
			if who.Subject != "" {
				t.Errorf("an identity came with the error: %+v", who)
			}
			if good, _ := w.github.Tokens(); good != 0 {
				t.Errorf("%d tokens are left", good)
			}
		})
	}
	for name, p := range map[string]githubtest.Person{
		"suspended, as an Enterprise server says it": {ID: 1, Login: "gone", Suspended: "2026-01-01T00:00:00Z"},
		"an organization": {ID: 1, Login: "octo-org", Type: "Organization"},
		"a bot":           {ID: 1, Login: "octo[bot]", Type: "Bot"},
	} {
		t.Run(name, func(t *testing.T) {
			w := setup(t, github.Options{})
			w.github.SignIn(p)
			_, err := w.signIn(t)
			refused(t, err, fault.Forbidden)
		})
	}
}

func TestAsksToWait(t *testing.T) {
	now := time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		path   string
		status int
		header http.Header
		want   time.Duration
	}{
		{"a secondary limit", "/user", 403, http.Header{"Retry-After": {"90"}}, 90 * time.Second},
		{"too many requests", "/user", 429, http.Header{"Retry-After": {"7"}}, 7 * time.Second},
		{"the hour's requests are used up", "/user/emails", 403, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {fmt.Sprint(now.Add(10 * time.Minute).Unix())}}, 10 * time.Minute},
		{"of the organizations", "/user/memberships/orgs", 429, nil, time.Minute},
		{"of the token endpoint", "/login/oauth/access_token", 429, http.Header{"Retry-After": {"5"}}, 5 * time.Second},
		{"a time that is past", "/user", 403, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1"}}, time.Second},
		{"a time without end", "/user", 429, http.Header{"Retry-After": {"2000000000"}}, time.Hour},
		{"no number", "/user", 429, http.Header{"Retry-After": {"soon"}}, time.Minute},
		{"a negative one", "/user", 429, http.Header{"Retry-After": {"-5"}}, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t, github.Options{NeedOrgs: true, Now: func() time.Time { return now }})
			w.github.Behave(githubtest.Behaviour{Status: map[string]int{c.path: c.status}, Header: map[string]http.Header{c.path: c.header}, Message: "SECRET-DETAIL: You have exceeded a secondary rate limit"})
			_, err := w.signIn(t)
			refused(t, err, fault.Limited)
			var f *fault.Error
			if !errors.As(err, &f) || f.RetryAfter != c.want {
				t.Errorf("it asks to wait %v, want %v", f.RetryAfter, c.want)
			}
		})
	}
}
