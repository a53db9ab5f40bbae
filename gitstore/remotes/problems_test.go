package remotes_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"satchel/gitstore/remotes"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Attack: a remote has content that is expensive to check and is then rejected. The problem is
// reported with a remedy, and the remote is not checked again at every use of the space.
func TestWhatASpaceCannotTakeIsNotFetchedAgainAndAgain(t *testing.T) {
	memory := remoteError(transport.OverLimit)
	memory.Op, memory.Memory = "fetch", true
	for name, c := range map[string]struct {
		at             string
		err            error
		problem        remotes.Problem
		detail, remedy string
	}{
		"too many files":  {"integrate", fault.New(fault.TooLarge, "The space would have 300000 files, and 200000 are allowed."), transport.OverLimit, "300000 files", "smaller repository"},
		"nested too deep": {"integrate", fault.New(fault.Invalid, "The repository has directories that are nested more than 512 deep."), transport.Malformed, "512 deep", "Change the repository"},
		"at the fetch":    {"fetch", fault.New(fault.TooLarge, "The repository would be larger than 4 GiB."), transport.OverLimit, "4 GiB", "smaller repository"},
		"too much memory": {"fetch", memory, transport.OverLimit, "more memory", "smaller repository"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				b.git.set(func() {
					b.git.hook = func(_ context.Context, op string, _ space.SpaceID, _ transport.Endpoint) error {
						if op == c.at {
							return c.err
						}
						return nil
					}
				})
				b.start()
				id := b.git.add()
				b.git.set(func() { b.git.spaces[id].remote = 7 })
				if err := b.Set(t.Context(), remotes.SetRequest{Space: id, URL: "https://git.example/" + string(id)}); err != nil {
					t.Fatal(err)
				}
				for range 1000 { // 2 hours and 47 minutes of use of the space
					time.Sleep(10 * time.Second)
					b.Used(id)
					b.Publish(b.git.commit(id))
				}
				if n := strings.Count(b.git.took(), c.at+"@"); n < 2 || n > 3 {
					t.Errorf("it was tried %d times", n)
				}
				st := b.wantState(id, space.RemoteFailed)
				if st.Problem != c.problem || !strings.Contains(st.Detail, c.detail) || !strings.Contains(st.Remedy, c.remedy) || !strings.Contains(st.Remedy, "every hour") {
					t.Errorf("told as %s: %q %q", st.Problem, st.Detail, st.Remedy)
				}
			})
		})
	}
}
