package gvisor_test

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/procmem"
	"satchel/internal/space"
	"satchel/sandbox/agent"
	"satchel/sandbox/gvisor"
)

// giveBackCommand makes a test binary process 1 of a sandbox that gives memory
// back over and over while it works.
const giveBackCommand = "give-back-at-work"

// reclaimAtWork passes turns between threads that signals interrupt, and says
// so when it has come through. A wait that a signal interrupted begins again at
// its system call, the second of the two instructions that gVisor replaces.
func reclaimAtWork() int {
	reclaimer, err := procmem.NewSandboxedReclaimer()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	const threads = 8
	turns := make([]chan struct{}, threads)
	for i := range turns {
		turns[i] = make(chan struct{})
	}
	for i := range turns {
		go func() {
			runtime.LockOSThread()
			for range turns[i] {
				time.Sleep(time.Microsecond)
				turns[(i+1)%threads] <- struct{}{}
			}
		}()
	}
	for i := 0; i < threads; i += 2 {
		turns[i] <- struct{}{}
	}
	for range 2 {
		go func() {
			for {
				unix.Kill(os.Getpid(), unix.SIGURG) // which Go's runtime makes nothing of
			}
		}()
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				reclaimer.Reclaim()
			}
		})
	}
	all.Wait()
	fmt.Println("came through")
	return 0
}

// gVisor writes to the text of a program that runs. What the program gives back
// must not be that: a thread that was in it would die, and process 1 with it.
func TestGivingBackMemoryAtWork(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, func(o *gvisor.Options) { o.Args = []string{agent.Exe, giveBackCommand} })
	s := start(t, r, space.SandboxSpec{Limits: space.Limits{Memory: 1 << 30, Processes: 64}})
	said, err := io.ReadAll(s.Conn())
	if strings.TrimSpace(string(said)) != "came through" {
		ended(t, s)
		t.Errorf("%q, %v; the sandbox: %v", said, err, s.Err())
	}
}
