package access_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"satchel/auth/oidc/access"
	"satchel/internal/fault"
)

// These tests use synctest's clock. It does not move while anything runs, and the issuer
// answers in memory.

func want(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("got %v, want %q", err, code)
	}
}

func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, fresh := ec(), ecOther()
		is := newIssuer(old)
		v := is.verifier(t)
		_, err := verify(v, old.token(good(time.Now())))
		want(t, err, "")
		is.publish(old, fresh)
		_, err = verify(v, fresh.token(good(time.Now())))
		want(t, err, "")
		_, err = verify(v, old.token(good(time.Now())))
		want(t, err, "")
		is.publish(fresh)
		time.Sleep(16 * time.Minute) // the background fetch
		_, err = verify(v, old.token(good(time.Now())))
		want(t, err, fault.Unauthenticated)
		_, err = verify(v, fresh.token(good(time.Now())))
		want(t, err, "")
	})
}

func TestRotationWithoutKeyIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := newIssuer()
		no := obj{"kid": nil}
		is.keys = []map[string]any{ec().jwk(no), rsaKey().jwk(no)}
		v := is.verifier(t)
		_, err := verify(v, ec().token(good(time.Now()), no))
		want(t, err, "")
		is.set(func(is *issuer) { is.keys = []map[string]any{ecOther().jwk(no)} })
		_, err = verify(v, ecOther().token(good(time.Now()), no))
		want(t, err, "")
		_, err = verify(v, ec().token(good(time.Now()), no))
		want(t, err, fault.Unauthenticated)
	})
}

func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := ec()
		is := newIssuer(k)
		v := is.verifier(t, func(o *access.Options) { o.KeysMaxAge, o.OutageGrace = 10*time.Second, 2*time.Minute })
		begin := time.Now()
		_, err := verify(v, k.token(good(begin)))
		want(t, err, "")
		is.set(func(is *issuer) { is.down = true })
		for time.Since(begin) < time.Minute {
			time.Sleep(5 * time.Second)
			_, err = verify(v, k.token(good(time.Now())))
			want(t, err, "")
		}
		// The verifier cannot judge an unknown key while it cannot ask the issuer: the
		// issuer does not answer, or was asked too often.
		for range 30 {
			_, err = verify(v, ecOther().token(good(time.Now())))
			want(t, err, fault.Unavailable)
		}
		// Known keys suffice to refuse a forged token.
		forged := ecOther()
		forged.kid = k.kid
		_, err = verify(v, forged.token(good(time.Now())))
		want(t, err, fault.Unauthenticated)

		time.Sleep(2*time.Minute - time.Since(begin) + 9*time.Second) // 1 s before the keys become unusable
		_, err = verify(v, k.token(good(time.Now())))
		want(t, err, "")
		time.Sleep(time.Second)
		_, err = verify(v, k.token(good(time.Now())))
		want(t, err, fault.Unavailable)
		if f := new(fault.Error); !asFault(err, &f) || f.RetryAfter <= 0 || strings.Contains(f.Public, "refused") {
			t.Errorf("what is told of it: %+v", f)
		}
		is.set(func(is *issuer) { is.down = false })
		time.Sleep(31 * time.Second) // the longest wait between attempts
		_, err = verify(v, k.token(good(time.Now())))
		want(t, err, "")
	})
}

func TestStartsWhileTheIssuerIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := ec()
		is := newIssuer(k)
		is.down = true
		v := is.verifier(t)
		_, err := verify(v, k.token(good(time.Now())))
		want(t, err, fault.Unavailable)
		// A text that is not a token is refused without keys.
		_, err = verify(v, "satchel_key")
		want(t, err, fault.Unauthenticated)
		is.set(func(is *issuer) { is.down = false })
		time.Sleep(31 * time.Second)
		if is.fetched() != 1 {
			t.Fatalf("%d fetches of keys: the background does not try again", is.fetched())
		}
		_, err = verify(v, k.token(good(time.Now())))
		want(t, err, "")
	})
}

// Attack: random kids make the server flood its issuer.
func TestRandomKeyIDsCauseBoundedFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := ec()
		is := newIssuer(k)
		v := is.verifier(t)
		stranger := ecOther()
		flood := func(n int) {
			var all sync.WaitGroup
			for i := range n {
				stranger.kid = fmt.Sprint("random-", i)
				token := stranger.token(good(time.Now()))
				all.Go(func() {
					_, err := verify(v, token)
					if fault.CodeOf(err) != fault.Unauthenticated {
						t.Errorf("got %v", err)
					}
				})
				if i%3 == 0 { // alternately one by one and together
					all.Wait()
				}
			}
			all.Wait()
		}
		flood(300)
		if n := is.fetched(); n > 11 { // the first fetch and the burst
			t.Fatalf("300 tokens caused %d fetches", n)
		}
		before := is.fetched()
		for range 60 {
			time.Sleep(time.Second)
			flood(10)
		}
		if n := is.fetched() - before; n > 13 { // one each 5 s
			t.Fatalf("600 tokens in a minute caused %d fetches", n)
		}
		_, err := verify(v, k.token(good(time.Now())))
		want(t, err, "")
		// The verifier still notices a rotation with the next fetch that the limit allows.
		stranger.kid = "ec-2"
		is.publish(k, stranger)
		time.Sleep(5 * time.Second)
		_, err = verify(v, stranger.token(good(time.Now())))
		want(t, err, "")
	})
}

func TestManyWaitForOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := newIssuer(ec())
		gate := make(chan struct{})
		is.gate = gate
		v := is.verifier(t)
		var all sync.WaitGroup
		for range 50 {
			token := ec().token(good(time.Now()))
			all.Go(func() {
				_, err := verify(v, token)
				if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(gate)
		all.Wait()
		if n := is.fetched(); n != 1 {
			t.Fatalf("%d fetches for 50 callers", n)
		}
	})
}

// Attack: tokens with unknown keys while the issuer is slow, so that requests pile up.
func TestCallersThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := newIssuer(ec())
		v := is.verifier(t)
		_, err := verify(v, ec().token(good(time.Now())))
		want(t, err, "")
		gate := make(chan struct{})
		is.set(func(is *issuer) { is.gate = gate })
		token := ecOther().token(good(time.Now()))
		answers := make(chan error, 1000)
		for range 1000 {
			go func() { _, err := verify(v, token); answers <- err }()
		}
		synctest.Wait()
		if n := len(answers); n != 1000-256 {
			t.Errorf("%d of 1000 were answered at once", n)
		}
		// Tokens with a known key do not wait.
		_, err = verify(v, ec().token(good(time.Now())))
		want(t, err, "")
		close(gate)
		for range 1000 {
			if c := fault.CodeOf(<-answers); c != fault.Unavailable && c != fault.Unauthenticated {
				t.Fatalf("got %q", c)
			}
		}
	})
}

func TestSlowIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := ec()
		is := newIssuer(k)
		is.hang = true
		v := is.verifier(t, func(o *access.Options) { o.RequestTimeout = 2 * time.Second })
		begin := time.Now()
		_, err := verify(v, k.token(good(begin)))
		want(t, err, fault.Unavailable)
		if d := time.Since(begin); d > 2*time.Second {
			t.Errorf("a caller waited %s", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(time.Second)
		_, _, err = v.Verify(ctx, k.token(good(time.Now())))
		if c := fault.CodeOf(err); c != fault.Canceled && c != fault.Unavailable {
			t.Fatalf("got %v", err)
		}
		is.set(func(is *issuer) { is.hang = false })
		time.Sleep(40 * time.Second)
		_, err = verify(v, k.token(good(time.Now())))
		want(t, err, "")
	})
}

func TestCallerThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := newIssuer(ec())
		is.gate = make(chan struct{})
		v := is.verifier(t)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, _, err := v.Verify(ctx, ec().token(good(time.Now())))
		want(t, err, fault.Canceled)
		close(is.gate)
		_, err = verify(v, ec().token(good(time.Now())))
		want(t, err, "")
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := ec()
		is := newIssuer(k)
		is.hang = true
		v, err := access.New(is.options())
		if err != nil {
			t.Fatal(err)
		}
		answer := make(chan error)
		go func() { _, err := verify(v, k.token(good(time.Now()))); answer <- err }()
		synctest.Wait()
		v.Close() // does not wait for the issuer, which hangs
		want(t, <-answer, fault.Unavailable)
		_, err = verify(v, k.token(good(time.Now())))
		want(t, err, fault.Unavailable)
		v.Close()
	})
}

func TestClockSkew(t *testing.T) {
	const skew = 30 * time.Second
	for _, tt := range []struct {
		name  string
		claim string
		off   time.Duration // offset of the claim from now
		ok    bool
	}{
		{"expires now", "exp", 0, true},
		{"expired almost as long ago as clocks may differ", "exp", -skew + time.Second, true},
		{"expired as long ago as clocks may differ", "exp", -skew, false},
		{"good as soon as clocks may differ", "nbf", skew, true},
		{"good a moment later", "nbf", skew + time.Second, false},
		{"made as far ahead as clocks may differ", "iat", skew, true},
		{"made a moment further", "iat", skew + time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newIssuer(ec()).verifier(t, func(o *access.Options) { o.ClockSkew = skew })
				now := time.Now()
				_, err := verify(v, ec().token(good(now, obj{tt.claim: now.Add(tt.off).Unix()})))
				if (err == nil) != tt.ok {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestGarbageForKeys(t *testing.T) {
	keys := func(n int) string {
		return `{"keys":[` + strings.TrimSuffix(strings.Repeat(toJSON(ec().jwk())+",", n), ",") + `]}`
	}
	for name, body := range map[string]string{
		"a page":             "<!doctype html><title>Bad gateway</title>",
		"nothing":            " ",
		"not found":          "",
		"half of it":         keys(1)[:40],
		"null":               "null",
		"no keys":            "{}",
		"keys of no type":    `{"keys":"x"}`,
		"empty list":         `{"keys":[]}`,
		"numbers for keys":   `{"keys":[1,null,"x",[]]}`,
		"only a secret":      `{"keys":[{"kty":"oct","k":"AAAA"}]}`,
		"more than a server": keys(101),
		"longer than a book": `{"keys":[` + toJSON(ec().jwk()) + `],"x":"` + strings.Repeat("a", 1<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				is := newIssuer(ec())
				is.answers["/keys"] = body
				v := is.verifier(t)
				_, err := verify(v, ec().token(good(time.Now())))
				want(t, err, fault.Unavailable)

				is.set(func(is *issuer) { delete(is.answers, "/keys") })
				time.Sleep(time.Minute)
				_, err = verify(v, ec().token(good(time.Now())))
				want(t, err, "")

				// Good keys stay valid while the issuer publishes garbage.
				is.set(func(is *issuer) { is.answers["/keys"] = body })
				time.Sleep(time.Hour)
				_, err = verify(v, ec().token(good(time.Now())))
				want(t, err, "")
			})
		})
	}
}
