package access_test

import (
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/oidc/access"
	"satchel/internal/fault"
)

// FuzzVerify checks that no text causes a panic. Verify accepts only tokens that the issuer
// signed, byte for byte.
func FuzzVerify(f *testing.F) {
	k := ec()
	now := time.Now()
	v := newIssuer(k, rsaKey(), edKey()).verifier(f, func(o *access.Options) { o.RefetchEvery = time.Hour })
	signed := map[string]bool{}
	for _, c := range []obj{good(now), good(now, obj{"sub": nil}), good(now, obj{"scope": nil})} {
		token := k.token(c)
		signed[token] = true
		f.Add(token)
		f.Add(token + "=")
		f.Add(token[:len(token)-1])
		f.Add(strings.Replace(token, ".", "..", 1))
	}
	f.Add(rsaKey().token(good(now), obj{"alg": "HS256"}))
	f.Add(b64([]byte(`{"alg":"none"}`)) + "." + b64([]byte(`{}`)) + ".")
	f.Add("..")
	f.Add("")
	f.Fuzz(func(t *testing.T, token string) {
		e, who, err := v.Verify(t.Context(), token)
		if signed[token] {
			return
		}
		if err == nil {
			t.Fatalf("accepted as %+v", e)
		}
		if c := fault.CodeOf(err); c != fault.Unauthenticated || fault.PublicOf(err) != "The token is not valid." {
			t.Fatalf("got %v", err)
		}
		if e.Subject != "" || who.Subject != "" {
			t.Fatal("a refused token names somebody")
		}
	})
}

// FuzzClaims checks the results for any claims that the issuer signs. All texts are limited
// in length, without characters that forge lines. Without a person, a client and our
// audience there is no result.
func FuzzClaims(f *testing.F) {
	k := edKey()
	v := newIssuer(k).verifier(f, func(o *access.Options) { o.SpaceClaim = "a.b" })
	now := time.Now()
	f.Add(toJSON(good(now)))
	f.Add(toJSON(good(now, obj{"aud": []string{resource}, "a": obj{"b": "team"}})))
	f.Add(`{"exp":1e400}`)
	f.Add(`{"iss":"` + issuerURL + `","aud":[[]],"exp":99999999999}`)
	f.Add(`{"a":{"a":1,"a":2}}`)
	f.Add("[[[[")
	f.Fuzz(func(t *testing.T, claims string) {
		token := k.raw(`{"alg":"EdDSA","kid":"ed-1","typ":"at+jwt"}`, claims)
		e, who, err := v.Verify(t.Context(), token)
		if err != nil {
			if c := fault.CodeOf(err); c != fault.Unauthenticated && auth.ErrorCode(err) != "insufficient_scope" {
				t.Fatalf("got %v", err)
			}
			return
		}
		if e.Issuer != issuerURL || e.Subject == "" || e.Client == "" || len(e.Scopes) == 0 || !strings.Contains(claims, "exp") {
			t.Fatalf("accepted without what is needed: %+v", e)
		}
		for _, s := range []string{e.Subject, e.Client, e.Email, e.Name, e.Space, who.Login} {
			if len(s) > 512 || strings.ContainsAny(s, "\r\n\x00") {
				t.Fatalf("%q came out", s)
			}
		}
	})
}
