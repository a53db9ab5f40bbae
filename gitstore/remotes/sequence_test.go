package remotes_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"satchel/gitstore/remotes"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

var seedFlag = flag.Uint64("seed", 0, "run the one sequence of this seed")

// After any sequence of commits, lost events, uses, notices, pauses, failures, restarts and
// changes of others, each Status is true. When the failures end, every space gets in step
// without anybody's action.
func TestAnySequence(t *testing.T) {
	seeds := []uint64{*seedFlag}
	if *seedFlag == 0 {
		seeds = nil
		for s := range uint64(40) {
			seeds = append(seeds, s+1)
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			inTime(t, func(t *testing.T) { sequence(t, seed) })
		})
	}
}

func sequence(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	var well atomic.Bool
	var fate atomic.Uint64
	fate.Store(seed)
	b := newBench(t, func(o *remotes.Options) { o.Workers = 2; o.Backoff.Slow = time.Minute; o.Recent = time.Hour })
	problems := []transport.Problem{transport.Network, transport.Auth, transport.Stale, transport.RateLimited, transport.Secret, transport.NoBranch}
	b.git.set(func() {
		b.git.hook = func(ctx context.Context, op string, _ space.SpaceID, _ transport.Endpoint) error {
			if well.Load() {
				return nil
			}
			x := fate.Add(0x9e3779b97f4a7c15)
			x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
			select {
			case <-time.After(time.Duration(x>>40%2000) * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
			if x>>20%3 != 0 || op == "integrate" {
				return nil
			}
			e := &transport.Error{Problem: problems[x>>8%uint64(len(problems))], Op: op}
			if e.Problem == transport.RateLimited {
				e.RetryAfter = 20 * time.Second
			}
			return e
		}
	})
	b.start()
	var ids []space.SpaceID
	for range 3 {
		ids = append(ids, b.remote())
	}
	var resumes []func()
	check := func() {
		for _, id := range ids {
			st := b.status(id)
			if st.State == space.RemotePushed && (st.Head != st.Pushed || st.Unpushed != 0 || st.Problem != "") ||
				st.State == space.RemoteFailed && (st.Problem == "" || st.Detail == "" || st.Attempts == 0) || st.State == space.RemoteLocal {
				t.Fatalf("%+v", st)
			}
		}
	}
	for range 80 {
		id := ids[rnd.IntN(len(ids))]
		switch rnd.IntN(12) {
		case 0, 1, 2:
			b.Publish(b.git.commit(id))
		case 3:
			b.git.commit(id) // the event is lost
		case 4:
			b.Used(id)
		case 5:
			b.Notify(id)
		case 6:
			b.git.set(func() {
				s := b.git.spaces[id]
				s.remote = max(s.remote, s.head) + 1
			})
		case 7:
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.IntN(3000))*time.Millisecond)
			b.Sync(ctx, id, nil)
			cancel()
		case 8:
			resume, err := b.Pause(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			resumes = append(resumes, resume)
		case 9:
			if len(resumes) > 0 {
				resumes[0]()
				resumes = resumes[1:]
			}
		case 10:
			if err := b.Set(t.Context(), remotes.SetRequest{Space: id, URL: b.status(id).Remote.URL, Username: fmt.Sprint(rnd.Uint64())}); err != nil {
				t.Fatal(err)
			}
		case 11:
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.IntN(1000))*time.Millisecond)
			b.Close(ctx)
			cancel()
			resumes = nil
			b.open()
			b.start()
		}
		check()
		time.Sleep(time.Duration(rnd.IntN(4000)) * time.Millisecond)
		check()
	}
	for _, resume := range resumes {
		resume()
	}
	well.Store(true)
	// Checks of a space in use find changes of others at the remote.
	for _, id := range ids {
		b.Used(id)
	}
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	check()
	for _, id := range ids {
		st := b.wantState(id, space.RemotePushed)
		if s := b.git.state(id); s.head != s.remote || st.Head != commit(s.head) {
			t.Errorf("seed %d: the head is %d and the remote's is %d", seed, s.head, s.remote)
		}
	}
	if s := b.Stats(); s.Queued+s.Running+len(s.Failed) != 0 || s.OldestUnpushed != 0 {
		t.Errorf("%+v", s)
	}
}
