package sandboxtest_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/sandbox/sandboxtest"
)

// TestKilledStartsOverGVisor: a part of sandboxes that start is killed. The
// commands that wait for them know nothing of it.
func TestKilledStartsOverGVisor(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"runtime", "runsc-gofer", "runsc-sandbox"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			c := newCell(t, nil, nil)
			c.must("true")
			before := c.processes("runsc-gofer")
			target := func() []int { return c.processes(part) }
			if part == "runtime" {
				before = append(before, c.processes("runsc-sandbox")...)
				pid, err := strconv.Atoi(c.child())
				if err != nil {
					t.Fatal(err)
				}
				target = func() []int { // once something starts
					if len(c.processes("runsc-gofer"))+len(c.processes("runsc-sandbox")) > len(before) {
						return []int{pid}
					}
					return nil
				}
			} else {
				before = target()
			}
			const users = 4
			done := make(chan outcome, users)
			for i := range users {
				r := c.request("echo ran >> ran; cat ran")
				r.User = space.UserID(fmt.Sprintf("u_start%d", i))
				r.Space = c.Store.Space(sandboxtest.Tree{"f": {Content: "f\n"}})
				go func() {
					res, err := c.exec(r)
					done <- outcome{res, err}
				}()
			}
			for killed := false; !killed && t.Context().Err() == nil; {
				for _, pid := range target() {
					if !slices.Contains(before, pid) {
						killed = unix.Kill(pid, unix.SIGKILL) == nil
						break
					}
				}
			}
			for range users {
				o := <-done
				switch {
				case errors.Is(o.err, space.ErrSandboxEnded):
					t.Log("the command had begun by then")
				case o.err != nil || o.res.Stdout.Text != "ran\n":
					t.Errorf("%+v, %v", o.res, o.err)
				}
			}
		})
	}
}
