package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/agent"
	"satchel/web/api"
)

// pretendPool runs nothing, and remembers what it was asked.
type pretendPool struct {
	mu      sync.Mutex
	asked   []sandbox.Request
	stopped []space.SpaceID
	hold    chan struct{} // a command "wait" ends with it
	begun   chan struct{}
	err     error
}

func (p *pretendPool) Exec(_ context.Context, r sandbox.Request) (sandbox.Result, error) {
	p.mu.Lock()
	p.asked = append(p.asked, r)
	err := p.err
	p.mu.Unlock()
	if strings.HasSuffix(r.Command, "wait") {
		p.begun <- struct{}{}
		<-p.hold
	}
	return sandbox.Result{Stdout: sandbox.Output{Text: "out", Cut: 5}, End: agent.Exited, ExitCode: 2, Duration: time.Second, Cold: len(p.asked) == 1}, err
}

func (p *pretendPool) StopMember(_ context.Context, _ space.UserID, id space.SpaceID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = append(p.stopped, id)
	return nil
}

func TestShellsRunReadOnlyOverTheLibraryAlone(t *testing.T) {
	p := &pretendPool{}
	s := newShells(p, shellLimits{Sessions: 2, Idle: 30 * time.Minute, Time: time.Minute})
	r, err := s.Run(t.Context(), api.Shell{User: "u", Grant: "g", Session: "a"}, "ls")
	if err != nil || r.Stdout != "out" || r.StdoutCut != 5 || r.End != "exited" || r.ExitCode != 2 || !r.Fresh || r.Duration != time.Second {
		t.Errorf("%+v %v", r, err)
	}
	q := p.asked[0]
	if !q.ReadOnly || !q.Attached || !q.Passing || q.Background || q.User != "u" || q.IdleStop != 30*time.Minute || q.WallTime != time.Minute {
		t.Errorf("%+v", q)
	}
	if _, err := space.ParseSpaceID(string(q.Space)); err == nil || !isLibraryAlone(q.Space) {
		t.Errorf("the sandbox is over the space %s", q.Space)
	}
	if _, err := s.Run(t.Context(), api.Shell{User: "u", Grant: "g"}, "ls"); err != nil || p.asked[1].IdleStop != 0 || p.asked[1].Space == q.Space {
		t.Errorf("without a session: %+v %v", p.asked[1], err)
	}
}

// The same name of a session is another sandbox for each grant and user, and no
// name leads into another's.
func TestAttackSessionsOfTwoGrantsNeverMeet(t *testing.T) {
	seen := map[space.SpaceID]string{}
	for _, at := range []api.Shell{
		{User: "u", Grant: "g1", Session: "s"}, {User: "u", Grant: "g2", Session: "s"}, {User: "v", Grant: "g1", Session: "s"}, {User: "u", Grant: "g1", Session: "t"}, {User: "u", Grant: "g1"},
		{User: "u", Grant: "g", Session: "1s"}, {User: "ug", Grant: "1", Session: "s"}, {User: "u", Grant: "", Session: "g1s"}, {User: "", Grant: "ug1", Session: "s"},
	} {
		id := shellSpace(at.User, at.Grant, at.Session)
		if other, ok := seen[id]; ok {
			t.Errorf("%+v and %s share %s", at, other, id)
		}
		seen[id] = fmt.Sprintf("%+v", at)
	}
}

func TestTheOldestSessionGivesWay(t *testing.T) {
	p := &pretendPool{hold: make(chan struct{}), begun: make(chan struct{})}
	s := newShells(p, shellLimits{Sessions: 2, Idle: 30 * time.Minute})
	now := time.Now()
	s.now = func() time.Time { now = now.Add(time.Second); return now }
	run := func(grant, session string) error {
		_, err := s.Run(t.Context(), api.Shell{User: "u", Grant: space.GrantID(grant), Session: session}, "true")
		return err
	}
	for _, session := range []string{"a", "b", "a", "", "c"} { // b was used longest ago; "" does not count
		if err := run("g", session); err != nil {
			t.Fatal(err)
		}
	}
	if want := shellSpace("u", "g", "b"); len(p.stopped) != 1 || p.stopped[0] != want {
		t.Errorf("stopped %v, want %s", p.stopped, want)
	}
	if err := run("h", "b"); err != nil || len(p.stopped) != 1 {
		t.Errorf("another grant's: %v %v", err, p.stopped)
	}
	// What runs is not stopped for it.
	done := make(chan struct{})
	for _, session := range []string{"a", "c"} {
		go func() {
			_, _ = s.Run(t.Context(), api.Shell{User: "u", Grant: "g", Session: session}, "wait")
			done <- struct{}{}
		}()
		<-p.begun
	}
	if err := run("g", "d"); fault.CodeOf(err) != fault.Limited || len(p.stopped) != 1 {
		t.Errorf("%v %v", err, p.stopped)
	}
	close(p.hold)
	<-done
	<-done
	if err := run("g", "d"); err != nil || len(p.stopped) != 2 {
		t.Errorf("%v %v", err, p.stopped)
	}
	// Nothing is remembered of what is over.
	now = now.Add(time.Hour)
	if err := run("g", "e"); err != nil || len(s.sessions) != 1 {
		t.Errorf("%v, %d sessions", err, len(s.sessions))
	}
}

func TestAShellWhoseSandboxEnds(t *testing.T) {
	p := &pretendPool{err: fault.Wrap(space.ErrOutOfMemory, fault.Unavailable, "It ran out of memory.")}
	s := newShells(p, shellLimits{Sessions: 1, Idle: time.Minute})
	r, err := s.Run(t.Context(), api.Shell{User: "u", Grant: "g"}, "x")
	if err != nil || r.End != "out_of_memory" || len(r.Notes) != 1 {
		t.Errorf("%+v %v", r, err)
	}
	p.err = fault.New(fault.Unavailable, "None.")
	if _, err := s.Run(t.Context(), api.Shell{User: "u", Grant: "g"}, "x"); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}
