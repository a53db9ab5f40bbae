package access_test

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/oidc/access"
	"satchel/internal/space"
)

func TestVerify(t *testing.T) {
	for _, k := range []signer{ec(), rsaKey(), edKey()} {
		t.Run(k.alg, func(t *testing.T) {
			v := newIssuer(k).verifier(t)
			exp := time.Now().Add(time.Hour).Truncate(time.Second)
			got, who, err := v.Verify(t.Context(), k.token(good(time.Now(), obj{"preferred_username": "ada", "exp": exp.Unix()})))
			if err != nil {
				t.Fatal(err)
			}
			want := auth.External{Issuer: issuerURL, Subject: "person-1", Email: "ada@example.com", Name: "Ada Lovelace",
				Client: "client-1", Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}, Expires: exp.Add(time.Minute)} // with the clock's skew
			if !got.Expires.Equal(want.Expires) {
				t.Errorf("good until %s, want %s", got.Expires, want.Expires)
			}
			got.Expires = want.Expires
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			wantWho := auth.ExternalIdentity{Issuer: issuerURL, Subject: "person-1", Email: "ada@example.com", Name: "Ada Lovelace", Login: "ada"}
			if !reflect.DeepEqual(who, wantWho) {
				t.Errorf("got  %+v\nwant %+v", who, wantWho)
			}
		})
	}
}

// Attack: somebody reads the log to find secrets. It has the reasons for refusals, but no
// secrets.
func TestLogHasNoToken(t *testing.T) {
	var log strings.Builder
	k := ec()
	v := newIssuer(k).verifier(t, func(o *access.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	now := time.Now()
	for _, token := range []string{
		k.token(good(now)), k.token(good(now, obj{"exp": 1})), k.token(good(now), obj{"crit": []string{"x"}}),
		k.token(good(now, obj{"scope": nil})), ecOther().token(good(now)), k.token(good(now)) + "x", "satchel_secretsecretsecret",
	} {
		_, err := verify(v, token)
		for _, part := range append(strings.Split(token, "."), "ada@example.com") {
			if len(part) > 20 && (strings.Contains(log.String(), part) || err != nil && strings.Contains(err.Error(), part)) {
				t.Errorf("it has %.20s…", part)
			}
		}
	}
	if !strings.Contains(log.String(), "critical extension") || !strings.Contains(log.String(), "has expired") {
		t.Errorf("it does not say why:\n%s", log.String())
	}
}
