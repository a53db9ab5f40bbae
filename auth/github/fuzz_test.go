package github_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"satchel/auth/github"
	"satchel/internal/fault"
)

// No answer of GitHub causes a panic. Every resulting person has a positive id and a login.
// Their address, if any, has the form of an address.
func FuzzAnswers(f *testing.F) {
	const user, emails, orgs = `{"id":1,"login":"octocat","name":"O","type":"User"}`, `[{"email":"o@example.com","primary":true,"verified":true}]`, `[{"state":"active","organization":{"login":"octo-org"}}]`
	f.Add(200, user, emails, orgs)
	f.Add(403, `{"message":"suspended"}`, "", "")
	f.Add(200, `{"id":1e3,"login":"\u0000"}`, `[null]`, `[{"organization":null}]`)
	f.Add(200, `{"id":9223372036854775808}`, `{}`, `null`)
	f.Fuzz(func(t *testing.T, status int, user, emails, orgs string) {
		if status < 100 || status > 599 {
			return
		}
		p, err := github.New(github.Options{ClientID: "c", NeedOrgs: true, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			switch r.URL.Path {
			case "/login/oauth/access_token":
				return answer(200, `{"access_token":"gho_x","token_type":"bearer"}`), nil
			case "/user":
				return answer(status, user), nil
			case "/user/emails":
				return answer(200, emails), nil
			}
			return answer(200, orgs), nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		_, flow, err := p.Begin(t.Context(), redirect, "s")
		if err != nil {
			t.Fatal(err)
		}
		who, err := p.Finish(t.Context(), redirect, flow, url.Values{"state": {"s"}, "code": {"c"}})
		if err != nil {
			if code := fault.CodeOf(err); code == fault.Internal || code == "" || who.Subject != "" {
				t.Fatalf("%v (%s) with %+v", err, code, who)
			}
			return
		}
		id, err := strconv.ParseInt(who.Subject, 10, 64)
		if err != nil || id <= 0 || who.Login == "" || who.GitHubLogin != who.Login || who.Issuer != "https://github.com" ||
			who.Email != "" && strings.Count(who.Email, "@") == 0 || strings.ContainsAny(who.Name, "\r\n\x00") || len(who.Name) > 200 {
			t.Fatalf("%+v", who)
		}
	})
}
