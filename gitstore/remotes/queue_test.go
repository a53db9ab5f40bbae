package remotes_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"satchel/gitstore/remotes"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// slowly makes an operation take some time.
func (f *fake) slowly(op string, d time.Duration) {
	f.set(func() {
		f.hook = func(ctx context.Context, o string, _ space.SpaceID, _ transport.Endpoint) error {
			if o != op {
				return nil
			}
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}

// A commit during a push is pushed by the next push, and so are a hundred commits.
func TestNoWakeUpIsLost(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start()
		b.git.slowly("push", 10*time.Second)
		id := b.remote()
		time.Sleep(time.Second)
		b.wantState(id, space.RemoteSyncing)
		for range 100 {
			b.Publish(b.git.commit(id))
		}
		time.Sleep(10 * time.Second)
		st := b.wantState(id, space.RemoteSyncing)
		if st.Pushed != commit(1) || st.Head != commit(101) || st.Unpushed != 100 {
			t.Errorf("%+v", st)
		}
		time.Sleep(time.Hour)
		b.wantState(id, space.RemotePushed)
		b.wantCalls("list@0s push@0s list@10s integrate@10s push@10s")
	})
}

// A commit without an event is pushed too, because the heads count and not the events.
func TestCommitWithoutAnEvent(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start()
		b.git.slowly("push", 10*time.Second)
		id := b.remote()
		time.Sleep(time.Second)
		b.git.commit(id)
		time.Sleep(time.Hour)
		if st := b.wantState(id, space.RemotePushed); st.Pushed != commit(2) {
			t.Errorf("%+v", st)
		}
	})
}

// A commit is also pushed if it comes after a sync has read the head for the last time, but
// before the sync has ended.
func TestCommitAtTheLastMoment(t *testing.T) {
	inTime(t, func(t *testing.T) {
		var b *bench
		var id space.SpaceID
		syncs := 0
		b = newBench(t, func(o *remotes.Options) {
			o.Metrics.Synced = func(string, time.Duration) {
				if syncs++; syncs == 1 {
					b.Publish(b.git.commit(id))
				}
			}
		})
		id = b.git.add()
		b.start()
		if err := b.Set(t.Context(), remotes.SetRequest{Space: id, URL: "https://git.example/" + string(id)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if st := b.wantState(id, space.RemotePushed); st.Pushed != commit(2) || syncs != 2 {
			t.Errorf("%+v after %d syncs", st, syncs)
		}
	})
}

// A late event of a commit that was already pushed does not cause syncs forever.
func TestLateEvent(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start()
		id := b.remote()
		synctest.Wait()
		old := b.git.commit(id)
		b.Publish(b.git.commit(id))
		synctest.Wait()
		b.git.took()
		b.Publish(old)
		time.Sleep(time.Hour)
		b.wantCalls("")
		b.wantState(id, space.RemotePushed)
	})
}

// The next process finds unpushed commits of the last one by the heads, and does not sync
// spaces that are up to date.
func TestStartDerivesTheQueue(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, nil)
		behind, inStep := b.remote(), b.remote()
		synctest.Wait()
		b.close()
		b.git.commit(behind)
		b.git.took()
		b.open()
		if err := b.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.wantCalls("") // Load does not start a sync
		b.wantState(behind, space.RemoteQueued)
		b.close()
		b.open()
		b.start()
		synctest.Wait()
		b.wantCalls("list@0s integrate@0s push@0s")
		b.wantState(behind, space.RemotePushed)
		b.wantState(inStep, space.RemotePushed)
	})
}

// The next process knows how the last sync ended before it tries again.
func TestFailureOutlivesTheProcess(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.git.failing(func() error {
			e := remoteError(transport.Secret)
			e.Paths = []space.RemoteLocation{{Commit: commit(1), Path: "a.md", Line: 3, Rule: "Some Token"}}
			return e
		})
		id := b.remote()
		synctest.Wait()
		before := b.wantState(id, space.RemoteFailed)
		b.close()
		b.open()
		if err := b.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := b.wantState(id, space.RemoteFailed)
		before.NextTry, before.Remote, after.Remote = time.Time{}, nil, nil
		if got, want := fmt.Sprintf("%+v", after), fmt.Sprintf("%+v", before); got != want || after.Attempts != 1 || len(after.Locations) != 1 {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// The next process also knows that the remote asked to wait.
func TestRetryAfterOutlivesTheProcess(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, func(o *remotes.Options) { o.Random = func() float64 { return 0 } })
		b.git.failing(func() error {
			e := remoteError(transport.RateLimited)
			e.RetryAfter = time.Hour
			return e
		})
		b.start()
		b.remote()
		time.Sleep(time.Minute)
		b.close()
		b.open()
		b.start()
		time.Sleep(58 * time.Minute)
		b.wantCalls("list@0s")
		time.Sleep(2 * time.Minute)
		b.wantCalls("list@1h0m0s")
	})
}

// Workers limits all syncs, failing remotes use at most half of them, and nobody waits forever.
func TestWorkersAreShared(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, func(o *remotes.Options) {
			o.Workers = 4
			o.Backoff = remotes.Backoff{Min: time.Second, Max: time.Second}
		})
		bad := map[space.SpaceID]bool{}
		var running, runningBad, most, mostBad atomic.Int64
		b.git.set(func() {
			b.git.hook = func(ctx context.Context, op string, id space.SpaceID, _ transport.Endpoint) error {
				if op != "list" {
					return nil
				}
				raise(&most, running.Add(1))
				defer running.Add(-1)
				if bad[id] {
					raise(&mostBad, runningBad.Add(1))
					defer runningBad.Add(-1)
					time.Sleep(10 * time.Minute) // the remote sends slowly
					return remoteError(transport.Timeout)
				}
				time.Sleep(time.Second)
				return nil
			}
		})
		b.start()
		var sick []space.SpaceID
		for range 8 {
			id := b.git.add()
			bad[id] = true
			sick = append(sick, id)
		}
		for _, id := range sick {
			if err := b.Set(t.Context(), remotes.SetRequest{Space: id, URL: "https://git.example/" + string(id)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour) // all remotes have failed once
		if most.Load() != 8 {
			t.Errorf("%d syncs ran at once, of which four took long", most.Load())
		}
		most.Store(0)
		mostBad.Store(0)
		var good []space.SpaceID
		for range 10 {
			good = append(good, b.remote())
		}
		time.Sleep(30 * time.Second)
		for _, id := range good {
			b.wantState(id, space.RemotePushed)
		}
		if most.Load() > 6 || mostBad.Load() > 2 {
			t.Errorf("%d syncs ran at once, %d of failing remotes", most.Load(), mostBad.Load())
		}
		time.Sleep(2 * time.Hour)
		for _, id := range sick {
			if st := b.status(id); st.Attempts < 2 {
				t.Errorf("a failing remote was tried %d times", st.Attempts)
			}
		}
		if s := b.Stats(); s.Remotes != 18 || s.Failed[transport.Timeout] != 8 || s.OldestUnpushed < 3*time.Hour || s.Running != 2 || s.Queued == 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Attack: remotes send a few bytes from time to time, so that their syncs last as long as
// possible and other spaces have no turn.
func TestSyncsThatTakeLongStarveNobody(t *testing.T) {
	for _, hostile := range []int{1, 4, 7, 12} {
		t.Run(fmt.Sprint(hostile), func(t *testing.T) {
			inTime(t, func(t *testing.T) {
				b := newBench(t, func(o *remotes.Options) { o.Workers, o.LongAfter = 4, 30*time.Second })
				var bad sync.Map
				var running, most atomic.Int64
				b.git.set(func() {
					b.git.hook = func(ctx context.Context, op string, id space.SpaceID, _ transport.Endpoint) error {
						if _, is := bad.Load(id); op != "list" || !is {
							return nil
						}
						raise(&most, running.Add(1))
						defer running.Add(-1)
						time.Sleep(time.Hour)
						return remoteError(transport.Timeout)
					}
				})
				b.start()
				for range hostile {
					id := b.git.add()
					bad.Store(id, true)
					if err := b.Set(t.Context(), remotes.SetRequest{Space: id, URL: "https://git.example/" + string(id)}); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				good := b.remote()
				if hostile > 7 { // the count is limited, so the wait ends when the remotes have failed once
					time.Sleep(2*time.Hour + 2*time.Minute)
				} else {
					time.Sleep(time.Minute)
				}
				b.wantState(good, space.RemotePushed)
				if n := most.Load(); n > 8 {
					t.Errorf("%d syncs ran at once", n)
				}
				// Failed remotes have their own lane now, so the others continue at once.
				time.Sleep(6 * time.Hour)
				again := b.remote()
				synctest.Wait()
				b.wantState(again, space.RemotePushed)
				if n := running.Load(); n > 2 {
					t.Errorf("%d syncs run of remotes that failed", n)
				}
			})
		})
	}
}

func raise(most *atomic.Int64, n int64) {
	for {
		old := most.Load()
		if n <= old || most.CompareAndSwap(old, n) {
			return
		}
	}
}

// Close lets a transfer end while its context allows, and starts no other.
func TestCloseDrains(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, func(o *remotes.Options) { o.Workers = 1 })
		b.start()
		b.git.slowly("push", 10*time.Second)
		first, second := b.remote(), b.remote()
		time.Sleep(time.Second)
		synced := make(chan error, 1)
		go func() {
			_, err := b.Sync(t.Context(), second, nil)
			synced <- err
		}()
		synctest.Wait()
		begin := time.Now()
		b.close()
		if took := time.Since(begin); took != 9*time.Second {
			t.Errorf("Close took %v", took)
		}
		if err := <-synced; fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("a sync that waits: %v", err)
		}
		b.wantState(first, space.RemotePushed)
		b.wantState(second, space.RemoteQueued)
		b.wantCalls("list@0s push@0s")
		b.Publish(b.git.commit(first))
		b.Used(first)
		b.Notify(first)
		if _, err := b.Sync(t.Context(), first, nil); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("a sync after Close: %v", err)
		}
		time.Sleep(time.Hour)
		b.wantCalls("")
	})
}

func TestCloseCutsOff(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start()
		b.git.slowly("push", time.Hour)
		id := b.remote()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		if err := b.Close(ctx); fault.CodeOf(err) != fault.Canceled {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("Close took %v", took)
		}
		if s := b.Stats(); s.Running != 0 || s.Queued != 0 {
			t.Errorf("%+v", s)
		}
		if st := b.wantState(id, space.RemoteQueued); st.Attempts != 0 {
			t.Errorf("to be cut off counts as a failure: %+v", st)
		}
	})
}

// Sync waits for a sync that began after the call, because a running sync may have read the
// remote before.
func TestSync(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start()
		b.git.slowly("list", 10*time.Second)
		id := b.remote()
		time.Sleep(time.Second)
		var said []string
		st, err := b.Sync(t.Context(), id, func(line string) { said = append(said, line) })
		if err != nil || st.State != space.RemotePushed {
			t.Errorf("%+v %v", st, err)
		}
		b.wantCalls("list@0s push@10s list@10s")
		if got := strings.Join(said, "|"); got != "Sending|Asking the remote what it has." {
			t.Errorf("progress %q", got)
		}
		b.git.commit(id)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = b.Sync(ctx, id, func(line string) { said = append(said, line) })
		if fault.CodeOf(err) != fault.Canceled {
			t.Errorf("%v", err)
		}
		n := len(said)
		time.Sleep(time.Minute)
		b.wantCalls("list@20s integrate@30s push@30s")
		if len(said) != n {
			t.Error("progress goes to a caller who has left")
		}
		if _, err := b.Sync(t.Context(), b.git.add(), nil); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a space without a remote: %v", err)
		}
	})
}

// Setting a remote and waiting causes one sync, whose failure is reported and not retried.
func TestSetAndSync(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start()
		id := b.git.add()
		b.git.failing(func() error { return remoteError(transport.Auth) })
		req := remotes.SetRequest{Space: id, URL: "https://git.example/" + string(id)}
		st, err := b.SetAndSync(t.Context(), t.Context(), req, nil)
		if err != nil || st.State != space.RemoteFailed || st.Attempts != 1 {
			t.Errorf("%+v %v", st, err)
		}
		b.git.failing(nil)
		var said []string
		st, err = b.SetAndSync(t.Context(), t.Context(), req, func(line string) { said = append(said, line) })
		if err != nil || st.State != space.RemotePushed || len(said) == 0 {
			t.Errorf("%+v %v %q", st, err, said)
		}
		b.wantCalls("list@0s list@0s push@0s")
		if _, err := b.SetAndSync(t.Context(), t.Context(), remotes.SetRequest{Space: id}, nil); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%v", err)
		}
	})
}

// Removing or changing a remote ends its running transfer.
func TestRemoveWhileSyncing(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start()
		b.git.slowly("push", time.Hour)
		id := b.remote()
		synctest.Wait()
		synced := make(chan error, 1)
		go func() {
			_, err := b.Sync(t.Context(), id, nil)
			synced <- err
		}()
		synctest.Wait()
		begin := time.Now()
		if err := b.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := <-synced; fault.CodeOf(err) != fault.NotFound || time.Since(begin) != 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		b.wantState(id, space.RemoteLocal)
		b.git.took()
		b.Publish(b.git.commit(id))
		b.Used(id)
		time.Sleep(time.Hour)
		b.wantCalls("")
		if b.git.state(id).tracked != 0 || b.Has(id) {
			t.Error("the remote is remembered")
		}
		b.close()
		b.open()
		b.start()
		b.wantState(id, space.RemoteLocal)
	})
}

// During concurrent commits and pushes, a Status never reports an unpushed head as pushed.
func TestStatusIsConsistent(t *testing.T) {
	b := newBench(t, func(o *remotes.Options) { o.CheckEvery = 1 })
	b.start()
	id := b.remote()
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 300 {
			b.Publish(b.git.commit(id))
			b.Used(id)
		}
		close(stop)
	}()
	for looked := false; ; looked = true {
		st := b.status(id)
		if st.State == space.RemotePushed && (st.Head != st.Pushed || st.Unpushed != 0) || st.State == space.RemoteLocal {
			t.Fatalf("%+v", st)
		}
		select {
		case <-stop:
			if looked {
				<-done
				if st, err := b.Sync(t.Context(), id, nil); err != nil || st.State != space.RemotePushed || st.Head != commit(301) {
					t.Fatalf("%+v %v", st, err)
				}
				return
			}
		default:
		}
	}
}
