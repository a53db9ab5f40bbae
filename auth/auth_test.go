package auth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func TestKey(t *testing.T) {
	form := regexp.MustCompile(`^satchel_[A-Za-z0-9_-]{49}$`)
	k := auth.NewKey()
	if !form.MatchString(k.Reveal()) {
		t.Fatalf("a key of another form than documented: %d characters", len(k.Reveal()))
	}
	if got, err := auth.ParseKey(k.Reveal()); err != nil || got.Reveal() != k.Reveal() || got.Hash() != k.Hash() {
		t.Fatalf("a key does not survive parsing: %v", err)
	}
	if auth.NewKey().Hash() == k.Hash() {
		t.Fatal("two keys are the same")
	}
}

func TestKeyThatIsNone(t *testing.T) {
	good := auth.NewKey().Reveal()
	flip := func(i int) string {
		c := byte('A')
		if good[i] == c {
			c = 'B'
		}
		return good[:i] + string(c) + good[i+1:]
	}
	for name, s := range map[string]string{
		"nothing":              "",
		"prefix alone":         auth.KeyPrefix,
		"one character less":   good[:len(good)-1],
		"one character more":   good + "A",
		"a secret bit changed": flip(20),
		"checksum changed":     flip(len(good) - 2),
		"upper-case prefix":    strings.ToUpper(good[:8]) + good[8:],
		"another alphabet":     good[:20] + "+" + good[21:],
		"space before":         " " + good,
		"line end after":       good + "\n",
	} {
		_, err := auth.ParseKey(s)
		if fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("%s: got %v, want unauthenticated", name, err)
		}
		if err != nil && len(s) > 20 && strings.Contains(err.Error(), s[10:20]) {
			t.Errorf("%s: the error tells the token", name)
		}
	}
}

// Attack: a secret gets into a log inside a struct.
func TestKeyNeverPrints(t *testing.T) {
	k := auth.NewKey()
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", k, "in", struct{ K auth.Secret }{k})
	js, err := json.Marshal(map[string]any{"k": k})
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{fmt.Sprint(k), fmt.Sprintf("%v %+v %#v %s %q", k, k, k, k, k), fmt.Sprintf("%+v %#v", struct{ k auth.Secret }{k}, struct{ k auth.Secret }{k}), log.String(), string(js)} {
		if strings.Contains(out, k.Reveal()[8:]) {
			t.Errorf("the secret is in %q", out)
		}
	}
}

func TestBearer(t *testing.T) {
	for _, tt := range []struct {
		name    string
		headers []string
		want    string // the token
		code    string // of ErrorCode; set if there is no token
	}{
		{"plain", []string{"Bearer abc"}, "abc", ""},
		{"all characters", []string{"Bearer aZ09-._~+/=="}, "aZ09-._~+/==", ""},
		{"scheme in any case", []string{"bEaReR abc"}, "abc", ""},
		{"more spaces", []string{"Bearer   abc"}, "abc", ""},
		{"longest", []string{"Bearer " + strings.Repeat("a", auth.MaxBearerBytes)}, strings.Repeat("a", auth.MaxBearerBytes), ""},
		{"none", nil, "", ""},
		{"another scheme", []string{"Basic dXNlcjpwYXNz"}, "", ""},
		{"a scheme that begins alike", []string{"Bearerx abc"}, "", ""},
		{"two headers", []string{"Bearer abc", "Bearer abc"}, "", "invalid_request"},
		{"two schemes", []string{"Basic x", "Bearer abc"}, "", "invalid_request"},
		{"no token", []string{"Bearer"}, "", "invalid_request"},
		{"empty token", []string{"Bearer "}, "", "invalid_request"},
		{"empty header", []string{""}, "", "invalid_request"},
		{"only padding", []string{"Bearer =="}, "", "invalid_request"},
		{"padding inside", []string{"Bearer a=b"}, "", "invalid_request"},
		{"two tokens", []string{"Bearer abc def"}, "", "invalid_request"},
		{"list of two", []string{"Bearer abc, Bearer def"}, "", "invalid_request"},
		{"trailing space", []string{"Bearer abc "}, "", "invalid_request"},
		{"tab for space", []string{"Bearer\tabc"}, "", "invalid_request"},
		{"quoted", []string{`Bearer "abc"`}, "", "invalid_request"},
		{"not ASCII", []string{"Bearer abcé"}, "", "invalid_request"},
		{"NUL", []string{"Bearer abc\x00"}, "", "invalid_request"},
		{"too long", []string{"Bearer " + strings.Repeat("a", auth.MaxBearerBytes+1)}, "", "invalid_request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Attack: a token in the query or in a form must never count.
			r := httptest.NewRequest("POST", "/mcp?access_token=fromquery", strings.NewReader("access_token=fromform"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header["Authorization"] = tt.headers
			p, err := auth.Authenticate(t.Context(), r, echo{})
			if tt.want != "" {
				if err != nil || p.Client != tt.want {
					t.Fatalf("Authenticate: %v", err)
				}
				return
			}
			if fault.CodeOf(err) != fault.Unauthenticated || auth.ErrorCode(err) != tt.code {
				t.Fatalf("got %v with code %q, want unauthenticated with %q", err, auth.ErrorCode(err), tt.code)
			}
		})
	}
}

// echo accepts every token, and returns the token as the client.
type echo struct{}

func (echo) Verify(_ context.Context, bearer string) (auth.Principal, error) {
	return auth.Principal{Client: bearer}, nil
}

func FuzzBearer(f *testing.F) {
	for _, s := range []string{"Bearer abc", "bearer  a==", "Basic x", "Bearer", "", "Bearer a b", "Bearer\tx", "Bearer =", "Bearer satchel_" + strings.Repeat("A", 49)} {
		f.Add(s)
	}
	allowed := regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)
	f.Fuzz(func(t *testing.T, header string) {
		r := &http.Request{Header: http.Header{"Authorization": {header}}}
		p, err := auth.Authenticate(t.Context(), r, echo{})
		if err != nil {
			return
		}
		token := p.Client
		if !allowed.MatchString(token) || !strings.HasSuffix(header, " "+token) || !strings.EqualFold(header[:6], "bearer") {
			t.Fatalf("%q was taken for the token %q", header, token)
		}
		if k, err := auth.ParseKey(token); err == nil && k.Reveal() != token {
			t.Fatal("a key is not what was parsed")
		}
	})
}

func TestChallenge(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    auth.Challenge
		want string
	}{
		{"nothing known", auth.Challenge{}, `Bearer`},
		{"no token was sent", auth.Challenge{Realm: "satchel", Scope: "read write", ResourceMetadata: "https://x.example/.well-known/oauth-protected-resource/mcp"},
			`Bearer realm="satchel", scope="read write", resource_metadata="https://x.example/.well-known/oauth-protected-resource/mcp"`},
		{"a bad token", auth.Challenge{Error: "invalid_token", Description: "The token has expired."},
			`Bearer error="invalid_token", error_description="The token has expired."`},
		{"Attack: a quote that ends the parameter", auth.Challenge{Description: `x", scope="admin`}, `Bearer error_description="x', scope='admin"`},
		{"Attack: a backslash that eats the quote", auth.Challenge{Description: `x\`}, `Bearer error_description="x?"`},
		{"Attack: a line end that adds a header", auth.Challenge{Description: "x\r\nSet-Cookie: a=b"}, `Bearer error_description="x??Set-Cookie: a=b"`},
		{"not ASCII", auth.Challenge{Description: "naïve\x7f"}, `Bearer error_description="na?ve?"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.c.Header(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestChallengeOf(t *testing.T) {
	reader := auth.Principal{UserName: "eve", SpaceName: "team", Role: space.Reader, Scopes: []space.Scope{space.ScopeRead}}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fault.New(fault.Unauthenticated, "Gone."), `Bearer error="invalid_token", error_description="Gone."`},
		{reader.Require(space.ScopeWrite), `Bearer error="insufficient_scope", error_description="eve is a reader of the space team and may not change it."`},
		{fault.New(fault.Forbidden, "No."), `Bearer`},
		{fmt.Errorf("dial 10.0.0.1: refused"), `Bearer`},
	} {
		if got := auth.ChallengeOf(tt.err).Header(); got != tt.want {
			t.Errorf("%v:\ngot  %s\nwant %s", tt.err, got, tt.want)
		}
	}
}

func TestEffectiveScopes(t *testing.T) {
	r, w := space.ScopeRead, space.ScopeWrite
	for _, tt := range []struct {
		granted []space.Scope
		role    space.Role
		want    string
	}{
		{[]space.Scope{r, w}, space.Owner, "read write"},
		{[]space.Scope{r, w}, space.Editor, "read write"},
		{[]space.Scope{r, w}, space.Reader, "read"},
		{[]space.Scope{w}, space.Editor, "write"},
		{[]space.Scope{w}, space.Reader, ""},
		{[]space.Scope{r}, space.Owner, "read"},
		{[]space.Scope{r, w}, "", ""},
		{[]space.Scope{r, w}, "admin", ""},
		{[]space.Scope{"admin"}, space.Owner, ""},
		{nil, space.Owner, ""},
	} {
		got := auth.EffectiveScopes(tt.granted, tt.role)
		if auth.ScopeList(got) != tt.want {
			t.Errorf("%v as %q: got %v, want %q", tt.granted, tt.role, got, tt.want)
		}
		p := auth.Principal{Role: tt.role, Scopes: got}
		for _, s := range []space.Scope{r, w} {
			err := p.Require(s)
			if has := strings.Contains(tt.want, string(s)); p.Can(s) != has || (err == nil) != has {
				t.Errorf("%v as %q: Can(%s) %v, Require %v", tt.granted, tt.role, s, p.Can(s), err)
			} else if !has && (fault.CodeOf(err) != fault.Forbidden || auth.ErrorCode(err) != "insufficient_scope") {
				t.Errorf("%v as %q: Require(%s) gives %v", tt.granted, tt.role, s, err)
			}
		}
	}
}

func TestPerson(t *testing.T) {
	for _, tt := range []struct{ p, want space.Person }{
		{space.Person{}, space.Person{Name: "ann", Email: "ann@satchel.invalid"}},
		{space.Person{Name: "Ann Lee", Email: "a@x.example"}, space.Person{Name: "Ann Lee", Email: "a@x.example"}},
	} {
		if got := (auth.Principal{UserName: "ann", Display: tt.p.Name, Email: tt.p.Email}).Person(); got != tt.want {
			t.Errorf("got %v, want %v", got, tt.want)
		}
	}
}

// The refusal also has words for a key without a name.
func TestRequireNamesTheClient(t *testing.T) {
	for client, want := range map[string]string{"": "this client was given read", "Claude": `"Claude" was given read`} {
		p := auth.Principal{Client: client, Role: space.Editor, Scopes: []space.Scope{space.ScopeRead}}
		if got := fault.PublicOf(p.Require(space.ScopeWrite)); !strings.Contains(got, want) {
			t.Errorf("%q does not contain %q", got, want)
		}
	}
}
