package gitstore

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// unread is the writer of a download that nobody reads.
type unread struct {
	began   chan struct{}
	release chan struct{}
}

func (u unread) Write(p []byte) (int, error) {
	select {
	case u.began <- struct{}{}:
	default:
	}
	<-u.release
	return len(p), nil
}

// Attack: a bundle that nobody reads delays a purge. The purge ends the bundle even so, and no
// bundle can begin during the purge.
func TestAttackUnreadBundleKeepsNoPurgeWaiting(t *testing.T) {
	s := newStore(t)
	noise := make([]byte, 2<<20)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	id := newSpace(t, s, map[string]string{"k": secret, "noise": string(noise)})
	w := unread{began: make(chan struct{}, 1), release: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- s.Bundle(t.Context(), id, w) }()
	<-w.began
	asked := 0
	_, err := s.Purge(t.Context(), id, "", func(p space.Path, b []byte) ([]byte, bool) {
		if asked++; asked == 1 {
			if err := s.Bundle(t.Context(), id, w); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.PublicOf(err), "removed") {
				t.Errorf("one that begins meanwhile: %v", err)
			}
		}
		return redact(p, b)
	}, space.Meta{Author: ada})
	if err != nil {
		t.Errorf("the purge: %v", err)
	}
	assertGone(t, s.o.Dir)
	close(w.release)
	if err := <-done; fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.PublicOf(err), "removed") {
		t.Errorf("the bundle: %v", err)
	}
	var whole strings.Builder
	if err := s.Bundle(t.Context(), id, &whole); err != nil || !strings.HasPrefix(whole.String(), "# v2 git bundle") {
		t.Errorf("after it: %v, %s", err, fmt.Sprintf("%.20q", whole.String()))
	}
}
