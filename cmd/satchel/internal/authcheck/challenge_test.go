package authcheck

import (
	"net/http"
	"strings"
	"testing"
)

func TestChallengesAreRead(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines []string
		want  map[string]string // nil if there is no challenge
	}{
		{"quoted", []string{`Bearer resource_metadata="https://a/b", scope="read write"`}, map[string]string{"resource_metadata": "https://a/b", "scope": "read write"}},
		{"as tokens", []string{`bearer error=invalid_token,scope=read`}, map[string]string{"error": "invalid_token", "scope": "read"}},
		{"with spaces", []string{`Bearer  scope = "read" ,  error = "x"`}, map[string]string{"scope": "read", "error": "x"}},
		{"escaped", []string{`Bearer realm="a \"b\", Basic c=\"d\"", scope="read"`}, map[string]string{"realm": `a "b", Basic c="d"`, "scope": "read"}},
		{"names in any case", []string{`Bearer Resource_Metadata="x"`}, map[string]string{"resource_metadata": "x"}},
		{"alone", []string{`Bearer`}, map[string]string{}},
		{"after another's in one line", []string{`Basic realm="x", Bearer scope="read"`}, map[string]string{"scope": "read"}},
		{"after a token68 in one line", []string{`Negotiate YWJj==, Bearer scope="read"`}, map[string]string{"scope": "read"}},
		{"before another's", []string{`Bearer scope="read", DPoP algs="ES256"`}, map[string]string{"scope": "read"}},
		{"in the second line", []string{`DPoP algs="ES256"`, `Bearer scope="read"`}, map[string]string{"scope": "read"}},
		{"none", []string{`Basic realm="Bearer scope=read"`}, nil},
		{"no end of a quote", []string{`Bearer scope="read`}, map[string]string{"scope": "read"}},
		{"garbage", []string{`"`, `=`, `,,`, ``}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := bearerChallenge(http.Header{"Www-Authenticate": tt.lines})
			if ok != (tt.want != nil) || len(got) != len(tt.want) {
				t.Fatalf("%v %q", ok, got)
			}
			for k, v := range tt.want {
				if got[k] != v {
					t.Errorf("%s is %q, not %q", k, got[k], v)
				}
			}
		})
	}
}

func FuzzBearerChallenge(f *testing.F) {
	f.Add(`Basic realm="x", Bearer scope="read", a=b`)
	f.Add(`Negotiate YWJj==, Bearer`)
	f.Add(`Bearer a="\`)
	f.Fuzz(func(t *testing.T, s string) {
		params, ok := bearerChallenge(http.Header{"Www-Authenticate": {s}})
		if ok && !strings.Contains(strings.ToLower(s), "bearer") {
			t.Fatalf("%q is read as a challenge", s)
		}
		for k := range params {
			if k != strings.ToLower(k) {
				t.Fatalf("the name %q", k)
			}
		}
	})
}
