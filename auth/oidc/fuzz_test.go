package oidc_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/auth/oidc"
	"satchel/internal/fault"
)

type answers map[string]string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Status: "200 OK", Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(a[r.URL.Path])), Request: r,
	}, nil
}

// No answer of an issuer causes a panic, and no unsigned token signs anybody in.
func FuzzAnswers(f *testing.F) {
	const configuration = `{"issuer":"https://i.example","authorization_endpoint":"https://i.example/a","token_endpoint":"https://i.example/t","jwks_uri":"https://i.example/j","userinfo_endpoint":"https://i.example/u"}`
	f.Add(configuration, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`, `{"access_token":"x","token_type":"bearer","id_token":"eyJhbGciOiJFZERTQSIsImtpZCI6IjEifQ.e30.AAAA"}`)
	f.Add(configuration, `{"keys":[{"kty":"oct","k":"AA"}]}`, `{"access_token":"x","id_token":"eyJhbGciOiJIUzI1NiJ9.e30.AAAA"}`)
	f.Add(configuration, `null`, `{"error":"invalid_grant"}`)
	f.Add(configuration[:40], `{}`, `[]`)
	f.Add(strings.Replace(configuration, "https://i.example/a", "javascript:1", 1), `{"keys":[null]}`, `{"access_token":7,"id_token":{}}`)
	f.Fuzz(func(t *testing.T, configuration, keys, token string) {
		p, err := oidc.New(oidc.Options{Issuer: "https://i.example", ClientID: "satchel", Transport: answers{
			"/.well-known/openid-configuration": configuration, "/j": keys, "/t": token, "/u": `{"sub":"x"}`,
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		location, flow, err := p.Begin(t.Context(), redirect, "s")
		if err != nil {
			if fault.CodeOf(err) != fault.Unavailable {
				t.Fatalf("%v (%s)", err, fault.CodeOf(err))
			}
			return
		}
		if !strings.HasPrefix(location, "https://") && !strings.HasPrefix(location, "http://") {
			t.Fatalf("the browser is sent to %q", location)
		}
		q := url.Values{"state": {"s"}, "code": {"c"}, "iss": {"https://i.example"}}
		who, err := p.Finish(t.Context(), redirect, flow, q)
		if code := fault.CodeOf(err); err == nil || code == fault.Internal || who.Subject != "" {
			t.Fatalf("%v (%s) with %+v", err, code, who)
		}
	})
}
