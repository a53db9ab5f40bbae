package remotes_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"satchel/gitstore/remotes"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// inTime runs a test whose clock only moves while all goroutines wait.
func inTime(t *testing.T, do func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, do)
}

func TestPushesWhatIsCommitted(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start()
		id := b.remote()
		synctest.Wait()
		b.wantState(id, space.RemotePushed)
		b.wantCalls("list@0s push@0s")
		time.Sleep(time.Minute)
		b.Publish(b.git.commit(id))
		synctest.Wait()
		st := b.wantState(id, space.RemotePushed)
		b.wantCalls("list@1m0s integrate@1m0s push@1m0s")
		if st.Head != commit(2) || st.Pushed != st.Head || st.Unpushed != 0 || st.Remote.Branch != "main" || st.Remote.Chosen {
			t.Errorf("%+v", st)
		}
	})
}

// Delays after temporary problems double up to their limit. Each is random over its whole
// range. They begin again after a successful sync.
func TestBackoff(t *testing.T) {
	inTime(t, func(t *testing.T) {
		var random atomic.Value
		random.Store(0.999999999)
		b := newBench(t, func(o *remotes.Options) {
			o.Backoff = remotes.Backoff{Min: time.Second, Max: 5 * time.Second}
			o.Random = func() float64 { return random.Load().(float64) }
		})
		b.git.failing(func() error { return remoteError(transport.Network) })
		b.start()
		id := b.remote()
		time.Sleep(13 * time.Second)
		b.wantCalls("list@0s list@1s list@3s list@7s list@12s")
		st := b.wantState(id, space.RemoteFailed)
		if st.Problem != transport.Network || st.Attempts != 5 || time.Until(st.NextTry).Round(time.Second) != 4*time.Second || st.Unpushed != 1 {
			t.Errorf("%+v", st)
		}
		random.Store(0.1)
		time.Sleep(5 * time.Second)
		b.wantCalls("list@17s list@17.5s list@18s")
		b.git.failing(nil)
		time.Sleep(time.Second)
		b.wantCalls("list@18.5s push@18.5s")
		if st := b.wantState(id, space.RemotePushed); st.Attempts != 0 || st.Problem != "" || !st.NextTry.IsZero() {
			t.Errorf("%+v", st)
		}
		b.git.failing(func() error { return remoteError(transport.Network) })
		random.Store(0.999999999)
		b.Publish(b.git.commit(id))
		time.Sleep(1500 * time.Millisecond)
		b.wantCalls("list@19s list@20s")
	})
}

// A problem that only a person can solve is retried slowly, and at once if they may have
// solved it.
func TestPermanentProblems(t *testing.T) {
	for _, p := range []transport.Problem{
		transport.Auth, transport.Forbidden, transport.Gone, transport.Moved, transport.ProtectedBranch, transport.Workflow, transport.Secret,
		transport.TooLarge, transport.OverLimit, transport.Rejected, transport.TLS, transport.BlockedAddress, transport.BadURL, transport.Shallow,
		transport.Malformed,
	} {
		t.Run(string(p), func(t *testing.T) {
			inTime(t, func(t *testing.T) {
				b := newBench(t, nil)
				b.git.failing(func() error { return remoteError(p) })
				b.start()
				id := b.remote()
				synctest.Wait()
				b.wantCalls("list@0s")
				if st := b.wantState(id, space.RemoteFailed); st.Problem != p || st.Detail == "" || st.Remedy == "" {
					t.Errorf("%+v", st)
				}
				// Neither a commit nor a use of the space causes another try.
				b.Publish(b.git.commit(id))
				b.Used(id)
				time.Sleep(59 * time.Minute)
				b.wantCalls("")
				time.Sleep(10 * time.Minute)
				b.wantCalls("list@1h6m0s")
				b.Notify(id)
				synctest.Wait()
				b.wantCalls("list@1h9m0s")
				if st, err := b.Sync(t.Context(), id, nil); err != nil || st.State != space.RemoteFailed || st.Attempts != 4 {
					t.Errorf("%+v %v", st, err)
				}
				b.wantCalls("list@1h9m0s")
				b.git.failing(nil)
				if err := b.Set(t.Context(), remotes.SetRequest{Space: id, URL: b.status(id).Remote.URL}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				b.wantCalls("list@1h9m0s push@1h9m0s")
				b.wantState(id, space.RemotePushed)
			})
		})
	}
}

// A remote that asks to wait is not contacted before: not for a new commit, a use of the space
// or its own notice. A person may request a sync.
func TestRetryAfter(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, func(o *remotes.Options) { o.Random = func() float64 { return 0 } })
		b.git.failing(func() error {
			e := remoteError(transport.RateLimited)
			e.RetryAfter = 90 * time.Second
			return e
		})
		b.start()
		id := b.remote()
		synctest.Wait()
		b.wantCalls("list@0s")
		b.Publish(b.git.commit(id))
		b.Used(id)
		b.Notify(id)
		time.Sleep(89 * time.Second)
		b.wantCalls("")
		time.Sleep(2 * time.Second)
		b.wantCalls("list@1m30s")
		if _, err := b.Sync(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
		b.wantCalls("list@1m31s")
	})
}

// Attack: a remote asks to wait for years, so that the space never syncs again.
func TestRetryAfterHasABound(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, func(o *remotes.Options) { o.Backoff.Longest = time.Hour; o.Random = func() float64 { return 0 } })
		b.git.failing(func() error {
			e := remoteError(transport.Server)
			e.RetryAfter = 100 * 365 * 24 * time.Hour
			return e
		})
		b.start()
		b.remote()
		time.Sleep(61 * time.Minute)
		b.wantCalls("list@0s list@1h0m0s")
	})
}

// The remote of a space in use is checked at most once per CheckEvery, and once per
// PollEvery between uses; an unused space costs nothing.
func TestChecks(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, func(o *remotes.Options) {
			o.CheckEvery, o.PollEvery, o.Recent = 5*time.Second, time.Minute, 3*time.Minute
		})
		b.start()
		id := b.remote()
		time.Sleep(24 * time.Hour)
		b.wantCalls("list@0s push@0s")
		for range 100 {
			b.Used(id)
			b.Used(id)
			time.Sleep(100 * time.Millisecond)
		}
		b.wantCalls("list@24h0m0s list@24h0m5s")
		time.Sleep(24 * time.Hour)
		b.wantCalls("list@24h1m5s list@24h2m5s list@24h3m5s")
		if st := b.wantState(id, space.RemotePushed); time.Since(st.LastCheck) < 23*time.Hour {
			t.Errorf("last check %v", st.LastCheck)
		}
	})
}

// New commits at the remote are fetched at the next check.
func TestTakesWhatIsAtTheRemote(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start()
		id := b.remote()
		time.Sleep(time.Minute)
		b.git.took()
		b.git.set(func() { b.git.spaces[id].remote = 7 })
		b.Notify(id)
		synctest.Wait()
		b.wantCalls("list@1m0s fetch@1m0s integrate@1m0s")
		if st := b.wantState(id, space.RemotePushed); st.Head != commit(7) {
			t.Errorf("%+v", st)
		}
	})
}

// A sync gives up after some rounds if the remote moves before every push.
func TestRestlessRemote(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, func(o *remotes.Options) { o.Rounds = 3 })
		b.start()
		id := b.remote()
		synctest.Wait()
		b.git.took()
		b.git.set(func() {
			b.git.hook = func(_ context.Context, op string, id space.SpaceID, _ transport.Endpoint) error {
				if op == "push" {
					return &transport.Error{Problem: transport.Stale, Op: op}
				}
				return nil
			}
		})
		b.Publish(b.git.commit(id))
		synctest.Wait()
		b.wantCalls(strings.TrimSpace(strings.Repeat("list@0s integrate@0s push@0s ", 3)))
		if st := b.wantState(id, space.RemoteFailed); st.Problem != remotes.Restless {
			t.Errorf("%+v", st)
		}
	})
}
