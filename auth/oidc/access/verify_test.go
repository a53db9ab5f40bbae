package access_test

import (
	"reflect"
	"testing"
	"time"

	"satchel/auth"
	"satchel/internal/space"
)

func TestVerify(t *testing.T) {
	for _, k := range []signer{ec(), rsaKey(), edKey()} {
		t.Run(k.alg, func(t *testing.T) {
			v := newIssuer(k).verifier(t)
			got, who, err := v.Verify(t.Context(), k.token(good(time.Now(), obj{"preferred_username": "ada"})))
			if err != nil {
				t.Fatal(err)
			}
			want := auth.External{Issuer: issuerURL, Subject: "person-1", Email: "ada@example.com", Name: "Ada Lovelace",
				Client: "client-1", Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			wantWho := auth.Claimant{Issuer: issuerURL, Subject: "person-1", Email: "ada@example.com", Name: "Ada Lovelace", Login: "ada"}
			if !reflect.DeepEqual(who, wantWho) {
				t.Errorf("got  %+v\nwant %+v", who, wantWho)
			}
		})
	}
}
