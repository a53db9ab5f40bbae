package store_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// wantCause checks the cause of a token request's error, and that the client may see its
// message.
func wantCause(t *testing.T, what string, err, cause error) {
	t.Helper()
	if fault.CodeOf(err) != fault.Invalid || !errors.Is(err, cause) || fault.PublicOf(err) == "" {
		t.Errorf("%s: got %v, want %v", what, err, cause)
	}
}

func (w *world) works(t auth.Tokens) bool {
	w.t.Helper()
	_, err := w.VerifyAccess(w.t.Context(), t.Access.Reveal(), resource)
	if err != nil && fault.CodeOf(err) != fault.Unauthenticated {
		w.t.Error(err)
	}
	return err == nil
}

// audited counts an action in the audit log.
func (w *world) audited(action string) (n int) {
	w.t.Helper()
	for a := range strings.FieldsSeq(w.actions()) {
		if a == action {
			n++
		}
	}
	return n
}

// Attack: 20 parallel redemptions of one code. One succeeds. The others revoke its grant,
// because the server cannot know which of them is the thief.
func TestCodeIsRedeemedOnceOf20InParallel(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		code := w.code(consent(ann, sp))
		release := w.holdUsers(9)
		var got atomic.Int32
		var winner auth.Tokens
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				tok, err := w.Redeem(t.Context(), redemption(code))
				if err == nil {
					got.Add(1)
					winner = tok
					return
				}
				wantCause(t, "a further redemption", err, auth.ErrInvalidGrant)
			})
		}
		release()
		wg.Wait()
		if got.Load() != 1 {
			t.Fatalf("%d redemptions succeeded", got.Load())
		}
		if w.works(winner) {
			t.Error("the grant outlives the reuse of its code")
		}
		_, err := w.Refresh(t.Context(), renewal(winner.Refresh))
		wantCause(t, "its refresh token", err, auth.ErrInvalidGrant)
		if n := w.audited("code.reuse"); n != 1 {
			t.Errorf("the reuse is %d times in the audit log", n)
		}
	})
}

// Attack: a thief redeems a stolen code after the client did.
func TestCodeReuseRevokesTheGrant(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		code := w.code(consent(ann, sp))
		first, err := w.Redeem(t.Context(), redemption(code))
		if err != nil {
			t.Fatal(err)
		}
		second := w.refresh(renewal(first.Refresh))
		other := w.connect(ann, sp)

		stranger := redemption(code)
		stranger.Client = "client-2"
		_, err = w.Redeem(t.Context(), stranger)
		wantCause(t, "another client with the code", err, auth.ErrInvalidGrant)
		if !w.works(second) {
			t.Fatal("another client ended the grant")
		}
		// The reuse counts long after the code has expired.
		w.pass(time.Hour)
		_, err = w.Redeem(t.Context(), redemption(code))
		wantCause(t, "the second redemption", err, auth.ErrInvalidGrant)
		if w.works(first) || w.works(second) {
			t.Error("a token outlives the reuse of its code")
		}
		if !w.works(other) {
			t.Error("another grant ended with it")
		}
		if w.audited("code.reuse") != 1 || w.audited("grant.create") != 2 {
			t.Errorf("the audit log has %s", w.actions())
		}
	})
}

// A wrong request gets nothing, and the code stays valid for its client.
func TestRedeemRefuses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		wrong func(*auth.Redemption)
		want  error
	}{
		{"Attack: another client", func(r *auth.Redemption) { r.Client = "client-2" }, auth.ErrInvalidGrant},
		{"Attack: no verifier", func(r *auth.Redemption) { r.Verifier = "" }, auth.ErrInvalidGrant},
		{"Attack: another verifier", func(r *auth.Redemption) { r.Verifier = strings.Repeat("x", 43) }, auth.ErrInvalidGrant},
		{"Attack: the challenge as verifier", func(r *auth.Redemption) { r.Verifier = challenge(verifier) }, auth.ErrInvalidGrant},
		{"a redirect URI that is longer", func(r *auth.Redemption) { r.RedirectURI += "/" }, auth.ErrInvalidGrant},
		{"a redirect URI in other case", func(r *auth.Redemption) { r.RedirectURI = strings.ToUpper(redirect) }, auth.ErrInvalidGrant},
		{"no redirect URI", func(r *auth.Redemption) { r.RedirectURI = "" }, auth.ErrInvalidGrant},
		{"Attack: another resource", func(r *auth.Redemption) { r.Resource = "https://other.example/mcp" }, auth.ErrInvalidTarget},
		{"an unknown code", func(r *auth.Redemption) { r.Code = auth.NewSecret(auth.KindCode).Reveal() }, auth.ErrInvalidGrant},
		{"no code", func(r *auth.Redemption) { r.Code = "" }, auth.ErrInvalidGrant},
		{"Attack: SQL", func(r *auth.Redemption) { r.Code = "' OR 1=1 --" }, auth.ErrInvalidGrant},
		{"Attack: a refresh token as code", func(r *auth.Redemption) { r.Code = auth.NewSecret(auth.KindRefresh).Reveal() }, auth.ErrInvalidGrant},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				ann, sp := w.user("ann", true)
				good := redemption(w.code(consent(ann, sp)))
				bad := good
				tt.wrong(&bad)
				_, err := w.Redeem(t.Context(), bad)
				wantCause(t, "Redeem", err, tt.want)
				if n := w.audited("grant.create"); n != 0 {
					t.Errorf("%d grants were made", n)
				}
				good.Resource = "" // the client need not repeat it
				if _, err := w.Redeem(t.Context(), good); err != nil {
					t.Errorf("the rightful client afterwards: %v", err)
				}
			})
		})
	}
}

// RFC 7636 section 4.1: 43 to 128 unreserved characters.
func TestVerifierForm(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		for name, tt := range map[string]struct {
			verifier string
			ok       bool
		}{
			"42 characters":           {strings.Repeat("a", 42), false},
			"43 characters":           {strings.Repeat("a", 43), true},
			"128 characters":          {strings.Repeat("a", 128), true},
			"129 characters":          {strings.Repeat("a", 129), false},
			"all unreserved":          {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~", true},
			"a space":                 {strings.Repeat("a", 43) + " ", false},
			"base64 with a plus":      {strings.Repeat("a", 43) + "+", false},
			"a letter with an umlaut": {strings.Repeat("ä", 43), false},
		} {
			c := consent(ann, sp)
			c.Challenge = challenge(tt.verifier)
			r := redemption(w.code(c))
			r.Verifier = tt.verifier
			if _, err := w.Redeem(t.Context(), r); (err == nil) != tt.ok {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Something may end between the consent and the token request.
func TestCodeOfWhoIsGone(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, w *world, bob store.User, team store.Space) error
	}{
		{"the code expired to the millisecond", func(t *testing.T, w *world, _ store.User, _ store.Space) error {
			w.pass(store.DefaultCodeLifetime)
			return nil
		}},
		{"the user was removed", func(t *testing.T, w *world, bob store.User, _ store.Space) error {
			return w.RemoveUser(t.Context(), cli, bob.ID)
		}},
		{"the user was suspended", func(t *testing.T, w *world, _ store.User, _ store.Space) error {
			_, _, err := w.SuspendUnlisted(t.Context(), cli, func(string) bool { return false })
			return err
		}},
		{"the membership ended", func(t *testing.T, w *world, bob store.User, team store.Space) error {
			return w.RemoveMember(t.Context(), cli, team.ID, bob.ID)
		}},
		{"the membership ended and began again", func(t *testing.T, w *world, bob store.User, team store.Space) error {
			if err := w.RemoveMember(t.Context(), cli, team.ID, bob.ID); err != nil {
				return err
			}
			return w.AddMember(t.Context(), cli, team.ID, bob.ID, space.Editor)
		}},
		{"the client was deleted", func(t *testing.T, w *world, _ store.User, _ store.Space) error {
			return w.DeleteClient(t.Context(), cli, "client-1")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.user("ann", true)
				bob, team := w.listed("bob")
				_, team = w.user("carl", false)
				if err := w.AddMember(t.Context(), cli, team.ID, bob.ID, space.Editor); err != nil {
					t.Fatal(err)
				}
				if err := w.RegisterClient(t.Context(), auth.Client{ID: "client-1"}); err != nil {
					t.Fatal(err)
				}
				code := w.code(consent(bob, team))
				if err := tt.do(t, w, bob, team); err != nil {
					t.Fatal(err)
				}
				_, err := w.Redeem(t.Context(), redemption(code))
				wantCause(t, "Redeem", err, auth.ErrInvalidGrant)
			})
		})
	}
}

func TestConsentRefuses(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		bob, bobSpace := w.listed("bob")
		if err := w.AddMember(t.Context(), cli, annSpace.ID, bob.ID, space.Reader); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			name  string
			wrong func(*auth.Consent)
			want  fault.Code
		}{
			{"Attack: another's space", func(c *auth.Consent) { c.User, c.Space = ann.ID, bobSpace.ID }, fault.NotFound},
			{"an unknown space", func(c *auth.Consent) { c.Space = space.NewSpaceID() }, fault.NotFound},
			{"an unknown user", func(c *auth.Consent) { c.User = "u_x" }, fault.NotFound},
			{"no scope", func(c *auth.Consent) { c.Scopes = nil }, fault.Invalid},
			{"an unknown scope", func(c *auth.Consent) { c.Scopes = []space.Scope{"admin"} }, fault.Invalid},
			{"write alone for a reader", func(c *auth.Consent) {
				c.User, c.Space, c.Scopes = bob.ID, annSpace.ID, []space.Scope{space.ScopeWrite}
			}, fault.Forbidden},
			{"no client", func(c *auth.Consent) { c.Client = "" }, fault.Invalid},
			{"no redirect URI", func(c *auth.Consent) { c.RedirectURI = "" }, fault.Invalid},
			{"no resource", func(c *auth.Consent) { c.Resource = "" }, fault.Invalid},
			{"Attack: no challenge", func(c *auth.Consent) { c.Challenge = "" }, fault.Invalid},
			{"a plain challenge", func(c *auth.Consent) { c.Challenge = verifier }, fault.Invalid},
		} {
			c := consent(ann, annSpace)
			tt.wrong(&c)
			code, err := w.CreateCode(t.Context(), c)
			wantCode(t, tt.name, err, tt.want)
			if code.Reveal() != "" {
				t.Errorf("%s: a code was made", tt.name)
			}
		}
		// A reader can grant only the right to read, even if the client asks for both.
		tok := w.connect(bob, annSpace)
		if auth.ScopeList(tok.Scopes) != "read" {
			t.Errorf("a reader granted %v", tok.Scopes)
		}
		w.suspend(bob)
		_, err := w.CreateCode(t.Context(), consent(bob, bobSpace))
		wantCode(t, "a suspended user", err, fault.Forbidden)
	})
}
