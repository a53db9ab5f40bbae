package access_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/oidc/access"
	"satchel/internal/fault"
)

func hs256(header, payload string, secret []byte) string {
	text := b64([]byte(header)) + "." + b64([]byte(payload))
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(text))
	return text + "." + b64(m.Sum(nil))
}

// Attacks by people who have no token of the issuer, or who change one. All get the same
// answer, which reveals nothing.
func TestForgedTokens(t *testing.T) {
	now := time.Now()
	k, r, stranger := ec(), rsaKey(), ecOther()
	stranger.kid = k.kid
	is := newIssuer(k, r, edKey())
	v := is.verifier(t)
	valid := k.token(good(now))
	parts := strings.Split(valid, ".")
	claims := toJSON(good(now))
	der, err := x509.MarshalPKIXPublicKey(r.private.Public())
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	none := func(alg string) string {
		return b64([]byte(`{"alg":"`+alg+`","typ":"at+jwt","kid":"ec-1"}`)) + "." + b64([]byte(claims)) + "."
	}
	header := func(more obj) string { return k.token(good(now), more) }
	padded := base64.URLEncoding.EncodeToString([]byte(toJSON(good(now, obj{"name": "x"}))))
	for len(padded) == len(strings.TrimRight(padded, "=")) {
		padded = base64.URLEncoding.EncodeToString([]byte(toJSON(good(now, obj{"name": "xy" + padded[:1]}))))
	}
	// lastBit returns the signature with a different last character. It decodes to the same
	// bytes if the decoder ignores spare bits.
	lastBit := func() string {
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		s := parts[2]
		i := strings.IndexByte(alphabet, s[len(s)-1])
		return s[:len(s)-1] + string(alphabet[i^1])
	}

	attacks := map[string]string{
		"nothing":                                 "",
		"no token at all":                         "satchel",
		"one dot":                                 parts[0] + "." + parts[1],
		"four parts":                              valid + ".x",
		"five parts, as an encrypted token":       valid + ".x.y",
		"unsigned: signature left out":            parts[0] + "." + parts[1] + ".",
		"another token's signature":               parts[0] + "." + parts[1] + "." + strings.Split(k.token(good(now, obj{"sub": "x"})), ".")[2],
		"payload changed":                         parts[0] + "." + b64([]byte(toJSON(good(now, obj{"sub": "admin"})))) + "." + parts[2],
		"header changed":                          b64([]byte(`{"alg":"ES256","kid":"ec-1","typ":"JWT"}`)) + "." + parts[1] + "." + parts[2],
		"wrong key under a known kid":             stranger.token(good(now)),
		"wrong key without kid":                   stranger.token(good(now), obj{"kid": nil}),
		"RS256 to HS256, public key as secret":    hs256(`{"alg":"HS256","typ":"at+jwt","kid":"rsa-1"}`, claims, public),
		"the same, key in DER":                    hs256(`{"alg":"HS256","typ":"at+jwt","kid":"rsa-1"}`, claims, der),
		"HS256 with an empty secret":              hs256(`{"alg":"HS256","typ":"at+jwt"}`, claims, nil),
		"HS512 named, HS256 made":                 hs256(`{"alg":"HS512","typ":"at+jwt"}`, claims, []byte("secret")),
		"HMAC under the name RS256":               hs256(`{"alg":"RS256","typ":"at+jwt","kid":"rsa-1"}`, claims, public),
		"HMAC under the name ES256":               hs256(`{"alg":"ES256","typ":"at+jwt","kid":"ec-1"}`, claims, public),
		"alg none with a signature":               none("none") + parts[2],
		"ES256 with an RSA key's kid":             k.token(good(now), obj{"kid": r.kid}),
		"RS256 with an EC key's kid":              r.token(good(now), obj{"kid": k.kid}),
		"alg of another case":                     k.token(good(now), obj{"alg": "es256"}),
		"alg that is not taken":                   signer{r.kid, "PS256", r.private}.token(good(now)),
		"alg RS1":                                 k.token(good(now), obj{"alg": "RS1"}),
		"no alg":                                  k.token(good(now), obj{"alg": nil}),
		"alg that is a list":                      k.token(good(now), obj{"alg": []string{"ES256"}}),
		"kid that is a path":                      stranger.token(good(now), obj{"kid": "../../../../dev/null"}),
		"kid that is a URL":                       stranger.token(good(now), obj{"kid": "https://evil.example/key"}),
		"kid that is SQL":                         stranger.token(good(now), obj{"kid": "x' UNION SELECT 'secret"}),
		"kid that is a number":                    header(obj{"kid": 1}),
		"kid that is null":                        k.raw(`{"alg":"ES256","typ":"at+jwt","kid":null}`, claims),
		"own key in jwk":                          stranger.token(good(now), obj{"jwk": stranger.jwk(), "kid": "mine"}),
		"own key in jku":                          stranger.token(good(now), obj{"jku": "https://evil.example/keys", "kid": "mine"}),
		"own certificate in x5u":                  stranger.token(good(now), obj{"x5u": "https://evil.example/cert"}),
		"own certificate in x5c":                  stranger.token(good(now), obj{"x5c": []string{"MIIB"}}),
		"critical extension":                      header(obj{"crit": []string{"exp"}}),
		"empty list of critical extensions":       header(obj{"crit": []string{}}),
		"unencoded payload (RFC 7797)":            header(obj{"crit": []string{"b64"}, "b64": false}),
		"signed header with alg twice":            k.raw(`{"alg":"none","alg":"ES256","typ":"at+jwt","kid":"ec-1"}`, claims),
		"signed header with an escaped double":    k.raw(`{"alg":"ES256","typ":"at+jwt","kid":"ec-1","\u006bid":"ec-1"}`, claims),
		"signed claims with sub twice":            k.raw(`{"alg":"ES256","typ":"at+jwt","kid":"ec-1"}`, claims[:len(claims)-1]+`,"sub":"admin"}`),
		"signed claims with a nested double":      k.raw(`{"alg":"ES256","typ":"at+jwt","kid":"ec-1"}`, claims[:len(claims)-1]+`,"x":[{"a":1,"a":2}]}`),
		"signed claims with something after them": k.raw(`{"alg":"ES256","typ":"at+jwt","kid":"ec-1"}`, claims+`{}`),
		"signed claims that are no object":        k.raw(`{"alg":"ES256","typ":"at+jwt","kid":"ec-1"}`, `["iss"]`),
		"signed claims that are null":             k.raw(`{"alg":"ES256","typ":"at+jwt","kid":"ec-1"}`, `null`),
		"signed claims that are not UTF-8":        k.raw(`{"alg":"ES256","typ":"at+jwt","kid":"ec-1"}`, claims[:len(claims)-1]+",\"x\":\"\xff\"}"),
		"signed claims nested deep":               k.raw(`{"alg":"ES256","typ":"at+jwt","kid":"ec-1"}`, claims[:len(claims)-1]+`,"x":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+"}"),
		"nested token":                            k.raw(`{"alg":"ES256","typ":"JWT","cty":"JWT","kid":"ec-1"}`, valid),
		"header that is no object":                k.raw(`"ES256"`, claims),
		"padding":                                 parts[0] + "." + padded + "." + parts[2],
		"padding after the signature":             valid + "==",
		"line end in the header":                  parts[0][:4] + "\n" + parts[0][4:] + "." + parts[1] + "." + parts[2],
		"line end in the signature":               valid[:len(valid)-4] + "\r\n" + valid[len(valid)-4:],
		"space before":                            " " + valid,
		"space after":                             valid + " ",
		"standard base64":                         strings.NewReplacer("-", "+", "_", "/").Replace(signedWith(k, now, "-_")),
		"another spelling of the same signature":  parts[0] + "." + parts[1] + "." + lastBit(),
		"signature of zeros":                      parts[0] + "." + parts[1] + "." + b64(make([]byte, 64)),
		"signature in ASN.1 length":               parts[0] + "." + parts[1] + "." + b64(make([]byte, 70)),
		"too long":                                k.token(good(now, obj{"x": strings.Repeat("a", auth.MaxBearerBytes)})),
		"16 MB":                                   strings.Repeat("a", 8<<20) + "." + strings.Repeat("b", 8<<20) + ".c",
		"only dots":                               "..",
	}
	for _, alg := range []string{"none", "None", "NONE", "nOnE", "nonE", " none", "none ", "", "none\\u0000"} {
		attacks["alg "+alg+" without signature"] = none(alg)
	}
	for name, token := range attacks {
		t.Run(name, func(t *testing.T) {
			e, who, err := v.Verify(t.Context(), token)
			if fault.CodeOf(err) != fault.Unauthenticated || auth.ErrorCode(err) != "invalid_token" {
				t.Fatalf("got %+v, %v; want unauthenticated", e, err)
			}
			if fault.PublicOf(err) != "The token is not valid." {
				t.Errorf("it is told %q", fault.PublicOf(err))
			}
			if e.Subject != "" || who.Subject != "" {
				t.Error("a refused token still names somebody")
			}
		})
	}
	for path := range is.requests() {
		if path != "/keys" && path != "/realms/acme/.well-known/openid-configuration" {
			t.Errorf("the server fetched %s", path)
		}
	}
	if _, err := verify(v, valid); err != nil {
		t.Fatalf("the attacks prove nothing: %v", err)
	}
}

// signedWith returns a token whose text contains all of the characters.
func signedWith(k signer, now time.Time, chars string) string {
	for i := 0; ; i++ {
		token := k.token(good(now, obj{"jti": i}))
		if !strings.ContainsFunc(chars, func(r rune) bool { return !strings.ContainsRune(token, r) }) {
			return token
		}
	}
}

// The issuer signed these tokens, but for something else. Their bearers may learn the reason.
func TestSignedForSomethingElse(t *testing.T) {
	now := time.Now()
	k := ec()
	is := newIssuer(k)
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	plain := obj{"typ": nil}
	for _, tt := range []struct {
		name   string
		claims obj
		header obj
		change func(*access.Options)
		want   string // part of the public message
	}{
		{name: "expired", claims: obj{"exp": at(-2 * time.Minute)}, want: "has expired"},
		{name: "no exp", claims: obj{"exp": nil}, want: "when it expires"},
		{name: "exp that is a text", claims: obj{"exp": "9999999999"}, want: "when it expires"},
		{name: "exp beyond all time", claims: obj{"exp": 1e300}, want: "when it expires"},
		{name: "exp before 1970", claims: obj{"exp": -1}, want: "when it expires"},
		{name: "not yet valid", claims: obj{"nbf": at(2 * time.Minute)}, want: "not valid yet"},
		{name: "made in the future", claims: obj{"iat": at(2 * time.Minute)}, want: "not valid yet"},
		{name: "nbf that is a text", claims: obj{"nbf": "0"}, want: "not valid yet"},
		{name: "other audience", claims: obj{"aud": "https://other.example.com/mcp"}, want: "another resource"},
		{name: "several other audiences", claims: obj{"aud": []string{"a", "b"}}, want: "another resource"},
		{name: "audience with a slash more", claims: obj{"aud": resource + "/"}, want: "another resource"},
		{name: "audience in capitals", claims: obj{"aud": strings.ToUpper(resource)}, want: "another resource"},
		{name: "our audience inside a text", claims: obj{"aud": "x " + resource}, want: "another resource"},
		{name: "our audience inside a list in a list", claims: obj{"aud": []any{[]string{resource}}}, want: "another resource"},
		{name: "our audience as an object's name", claims: obj{"aud": obj{resource: true}}, want: "another resource"},
		{name: "no audience", claims: obj{"aud": nil}, want: "another resource"},
		{name: "empty list of audiences", claims: obj{"aud": []string{}}, want: "another resource"},
		{name: "other issuer", claims: obj{"iss": "https://evil.example"}, want: "an issuer that this server does not accept"},
		{name: "issuer with a slash more", claims: obj{"iss": issuerURL + "/"}, want: "an issuer that this server does not accept"},
		{name: "issuer in capitals", claims: obj{"iss": strings.ToUpper(issuerURL)}, want: "an issuer that this server does not accept"},
		{name: "another realm", claims: obj{"iss": "https://login.example.com/realms/other"}, want: "an issuer that this server does not accept"},
		{name: "issuer that is a list", claims: obj{"iss": []string{issuerURL}}, want: "an issuer that this server does not accept"},
		{name: "no issuer", claims: obj{"iss": nil}, want: "an issuer that this server does not accept"},
		{name: "no sub", claims: obj{"sub": nil}, want: "names no person"},
		{name: "empty sub", claims: obj{"sub": ""}, want: "names no person"},
		{name: "sub that is a number", claims: obj{"sub": 7}, want: "names no person"},
		{name: "sub that is too long", claims: obj{"sub": strings.Repeat("a", 256)}, want: "names no person"},
		{name: "sub with a line end", claims: obj{"sub": "a\nb"}, want: "names no person"},
		{name: "sub with a lone surrogate", claims: obj{"sub": "a\uFFFD"}, want: "names no person"},
		{name: "session token without client", claims: obj{"client_id": nil, "session_id": "s"}, want: "names no client"},
		{name: "client that is empty", claims: obj{"client_id": ""}, want: "names no client"},
		{name: "client that is a list", claims: obj{"client_id": []string{"x"}}, want: "names no client"},
		{name: "ID token by its typ", header: obj{"typ": "id+jwt"}, want: "not an access token"},
		{name: "ID token by at_hash", header: plain, claims: obj{"at_hash": "x"}, want: "not an access token"},
		{name: "ID token by nonce", header: obj{"typ": "JWT"}, claims: obj{"nonce": "x"}, want: "not an access token"},
		{name: "ID token by Keycloak's typ", header: obj{"typ": "JWT"}, claims: obj{"typ": "ID"}, want: "not an access token"},
		{name: "refresh token by Keycloak's typ", header: obj{"typ": "JWT"}, claims: obj{"typ": "Refresh"}, want: "not an access token"},
		{name: "ID token by token_use", header: obj{"typ": "JWT"}, claims: obj{"token_use": "id"}, want: "not an access token"},
		{name: "logout token by its typ", header: obj{"typ": "logout+jwt"}, want: "not an access token"},
		{name: "logout token by events", header: obj{"typ": "JWT"}, claims: obj{"events": obj{"http://schemas.openid.net/event/backchannel-logout": obj{}}}, want: "not an access token"},
		{name: "logout token where any typ is taken", header: obj{"typ": "Logout+JWT"}, change: func(o *access.Options) { o.Types = nil }, want: "not an access token"},
		{name: "client assertion", header: obj{"typ": "client-authentication+jwt"}, want: "not an access token"},
		{name: "DPoP proof where any typ is taken", header: obj{"typ": "application/dpop+jwt"}, change: func(o *access.Options) { o.Types = nil }, want: "not an access token"},
		{name: "no typ where only at+jwt is taken", header: plain, change: func(o *access.Options) { o.Types = []string{"at+jwt"} }, want: "not an access token"},
		{name: "stolen token that is bound to a DPoP key", claims: obj{"cnf": obj{"jkt": "x"}}, want: "bound to a key"},
		{name: "stolen token that is bound to a certificate", claims: obj{"cnf": obj{"x5t#S256": "x"}}, want: "bound to a key"},
		{name: "required claim missing", change: func(o *access.Options) { o.RequireClaims = []string{"role=authenticated"} }, want: "the claim role"},
		{name: "required claim of another value", claims: obj{"role": "anon"}, change: func(o *access.Options) { o.RequireClaims = []string{"role=authenticated"} }, want: "the claim role"},
		{name: "one of two required claims", claims: obj{"a": "1"}, change: func(o *access.Options) { o.RequireClaims = []string{"a=1", "b=2"} }, want: "the claim b"},
		{name: "required value inside a text", claims: obj{"role": "not authenticated"}, change: func(o *access.Options) { o.RequireClaims = []string{"role=authenticated"} }, want: "the claim role"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			change := tt.change
			if change == nil {
				change = func(*access.Options) {}
			}
			v := is.verifier(t, change)
			token := k.token(good(now, tt.claims), tt.header)
			e, _, err := v.Verify(t.Context(), token)
			if fault.CodeOf(err) != fault.Unauthenticated || !strings.Contains(fault.PublicOf(err), tt.want) {
				t.Fatalf("got %+v, %v; want unauthenticated with %q", e, err, tt.want)
			}
		})
	}
}

// Attack: a token names its key, so that the library verifies the token with a key of the
// sender's choice.
func TestOnlyPublishedKeysVerify(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		k    signer
		jwk  map[string]any
		want bool
	}{
		"as published":                {ec(), ec().jwk(), true},
		"without use":                 {ec(), ec().jwk(obj{"use": nil}), true},
		"with its algorithm":          {rsaKey(), rsaKey().jwk(obj{"alg": "RS256"}), true},
		"Ed25519 by its newer name":   {edKey(), edKey().jwk(obj{"alg": "Ed25519"}), true},
		"key_ops verify":              {ec(), ec().jwk(obj{"key_ops": []string{"verify"}}), true},
		"for another algorithm":       {rsaKey(), rsaKey().jwk(obj{"alg": "PS256"}), false},
		"for encryption":              {rsaKey(), rsaKey().jwk(obj{"use": "enc"}), false},
		"for encryption by its alg":   {rsaKey(), rsaKey().jwk(obj{"use": nil, "alg": "RSA-OAEP"}), false},
		"key_ops encrypt":             {rsaKey(), rsaKey().jwk(obj{"use": nil, "key_ops": []string{"encrypt"}}), false},
		"key_ops empty":               {ec(), ec().jwk(obj{"key_ops": []string{}}), false},
		"RSA of 1024 bits":            {weakRSA(), weakRSA().jwk(), false},
		"the private key published":   {ec(), private(ec()), false},
		"a shared secret":             {signer{"s", "HS256", nil}, obj{"kty": "oct", "kid": "s", "k": b64([]byte("0123456789abcdef0123456789abcdef"))}, false},
		"a point that is not on P256": {ec(), ec().jwk(obj{"x": b64(make([]byte, 32))}), false},
	} {
		t.Run(name, func(t *testing.T) {
			is := newIssuer()
			is.keys = []map[string]any{tt.jwk, ecOther().jwk()}
			v := is.verifier(t)
			var token string
			if tt.k.alg == "HS256" {
				token = hs256(`{"alg":"HS256","kid":"s","typ":"at+jwt"}`, toJSON(good(now)), []byte("0123456789abcdef0123456789abcdef"))
			} else {
				token = tt.k.token(good(now))
			}
			_, err := verify(v, token)
			if (err == nil) != tt.want {
				t.Fatalf("got %v", err)
			}
			if err != nil && fault.CodeOf(err) != fault.Unauthenticated {
				t.Fatalf("got %v, want unauthenticated", err)
			}
			if _, err := verify(v, ecOther().token(good(now))); err != nil {
				t.Fatalf("one odd key spoils the others: %v", err)
			}
		})
	}
}

// private returns the key in the form of an issuer that also publishes its private part.
func private(s signer) map[string]any {
	m := s.jwk()
	d, err := s.private.(interface{ Bytes() ([]byte, error) }).Bytes()
	if err != nil {
		panic(err)
	}
	m["d"] = b64(d)
	return m
}

func TestNewRefuses(t *testing.T) {
	is := newIssuer(ec())
	for name, change := range map[string]func(*access.Options){
		"no issuer":                    func(o *access.Options) { o.Issuer = "" },
		"http":                         func(o *access.Options) { o.Issuer = "http://login.example.com" },
		"issuer with a query":          func(o *access.Options) { o.Issuer += "?x" },
		"issuer with a user":           func(o *access.Options) { o.Issuer = "https://a:b@login.example.com" },
		"no audience":                  func(o *access.Options) { o.Resource = "" },
		"an empty audience":            func(o *access.Options) { o.Audience = []string{""} },
		"alg none":                     func(o *access.Options) { o.Algorithms = []string{"none"} },
		"alg HS256":                    func(o *access.Options) { o.Algorithms = []string{"ES256", "HS256"} },
		"a default scope of no kind":   func(o *access.Options) { o.DefaultScopes = []string{"admin"} },
		"a required claim of no value": func(o *access.Options) { o.RequireClaims = []string{"role"} },
		"a negative skew":              func(o *access.Options) { o.ClockSkew = -1 },
	} {
		if v, err := access.New(is.options(change)); err == nil {
			v.Close()
			t.Errorf("%s: it is taken", name)
		}
	}
	v, err := access.New(is.options(func(o *access.Options) { o.Issuer = "http://127.0.0.1:1" }))
	if err != nil {
		t.Fatalf("an issuer on this machine: %v", err)
	}
	v.Close()
}
