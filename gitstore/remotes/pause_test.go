package remotes_test

import (
	"testing"
	"testing/synctest"
	"time"

	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// There is no push during work on a space's history; requested syncs follow after it.
func TestPause(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start()
		b.git.slowly("push", time.Hour)
		id := b.remote()
		synctest.Wait()
		var waited space.RemoteStatus
		done := make(chan struct{})
		resume, err := b.Pause(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		again, err := b.Pause(t.Context(), id) // another caller's pause
		if err != nil {
			t.Fatal(err)
		}
		b.git.slowly("push", 0)
		b.git.took()
		go func() {
			defer close(done)
			waited, _ = b.Sync(t.Context(), id, nil)
		}()
		b.Publish(b.git.commit(id))
		b.Used(id)
		b.Notify(id)
		time.Sleep(24 * time.Hour)
		resume()
		resume()
		time.Sleep(24 * time.Hour)
		b.wantCalls("")
		b.wantState(id, space.RemoteQueued)
		again()
		<-done
		if waited.State != space.RemotePushed || waited.Head != commit(2) {
			t.Errorf("%+v", waited)
		}
		b.wantCalls("list@48h0m0s push@48h0m0s")
	})
}

// A purge during a pause may have removed the reason of a failed push, so it is retried at
// once.
func TestPauseForgives(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.git.failing(func() error { return remoteError(transport.Secret) })
		b.start()
		id := b.remote()
		synctest.Wait()
		resume, err := b.Pause(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		b.git.failing(nil)
		b.Publish(b.git.commit(id))
		resume()
		synctest.Wait()
		b.wantState(id, space.RemotePushed)
	})
}
