package remotetest_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/gitstore/remotetest"
	"satchel/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client runs git as a person does.
func client(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	out, err := testenv.Git(t, dir, args...).CombinedOutput()
	return string(out), err
}

// clone returns a clone of "notes" with a commit that is not pushed.
func clone(t *testing.T, s *remotetest.Server) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	if out, err := client(t, "", "clone", s.URL("notes"), dir); err != nil {
		t.Fatal(out)
	}
	big := strings.Repeat("some line of text\n", 10)
	if err := os.WriteFile(filepath.Join(dir, "new.md"), []byte(big), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-m", "new"}} {
		if out, err := client(t, dir, args...); err != nil {
			t.Fatal(out)
		}
	}
	return dir
}

func notes(t *testing.T, o remotetest.Options) *remotetest.Server {
	t.Helper()
	s := remotetest.New(t, o)
	s.Create("notes")
	s.Push("notes", "main", map[string]string{"a.md": "one\n", "d/b.md": "two\n"})
	return s
}

// TestFaults tries each fault at each stage. The push fails, or it succeeds and git does not
// notice. A push without the fault then succeeds, and nothing is damaged.
func TestFaults(t *testing.T) {
	for _, stage := range []remotetest.Stage{remotetest.StagePushRefs, remotetest.StagePush} {
		for name, f := range map[string]remotetest.Fault{
			"401":               remotetest.Unauthorized(),
			"403":               remotetest.Forbidden(),
			"404":               remotetest.NotFound(),
			"429":               remotetest.RateLimited("1"),
			"503":               remotetest.Status(http.StatusServiceUnavailable, "busy"),
			"redirect":          remotetest.Redirect(301, "http://127.0.0.1:1/x.git/info/refs?service=git-receive-pack"),
			"request cut":       {Request: remotetest.Trouble{After: 100, Cut: true}},
			"request reset":     {Request: remotetest.Trouble{After: 100, Cut: true, Reset: true}},
			"answer cut":        {Response: remotetest.Trouble{After: 10, Cut: true}},
			"no answer":         {Response: remotetest.Trouble{Cut: true}},
			"answer truncated":  {Response: remotetest.Trouble{After: 10, Truncate: true}},
			"answer corrupted":  {Response: remotetest.Trouble{After: 2, Corrupt: true}},
			"request truncated": {Request: remotetest.Trouble{After: 200, Truncate: true}},
		} {
			if stage == remotetest.StagePush && name == "answer truncated" {
				continue // git push then waits forever: the caller of git must end it
			}
			t.Run(string(stage)+" "+name, func(t *testing.T) {
				s := notes(t, remotetest.Options{})
				dir := clone(t, s)
				before := s.Head("notes", "main")
				s.Inject(func(r remotetest.Request) remotetest.Fault {
					if r.Stage != stage {
						return remotetest.Fault{}
					}
					f.Name = name
					return f
				})
				s.Forget()
				if out, err := client(t, dir, "push"); err == nil && !strings.HasPrefix(name, "request") {
					t.Errorf("the push went well:\n%s", out)
				}
				s.Idle()
				s.Inject(nil)
				if !slices.ContainsFunc(s.Requests(), func(r remotetest.Request) bool { return r.Fault == name && r.Fired }) {
					t.Errorf("the fault did not fire: %+v", s.Requests())
				}
				after := s.Head("notes", "main")
				if landed := stage == remotetest.StagePush && strings.Contains(name, "answer"); stage == remotetest.StagePush && (after != before) != landed {
					t.Errorf("from %s to %s", before, after)
				}
				if out, err := client(t, dir, "push"); err != nil {
					t.Error(out)
				}
				s.Fsck("notes")
			})
		}
	}
}

// TestSlow checks that a slow body arrives, that a stalled one lasts until the client gives up,
// and that the server ends in both cases.
func TestSlow(t *testing.T) {
	s := notes(t, remotetest.Options{})
	s.Inject(func(remotetest.Request) remotetest.Fault {
		return remotetest.Fault{Name: "drip", Response: remotetest.Trouble{After: 5, Drip: 40, Every: time.Millisecond}}
	})
	if out, err := client(t, "", "ls-remote", s.URL("notes")); err != nil || !strings.Contains(out, "refs/heads/main") {
		t.Errorf("%v %s", err, out)
	}
	at := make(chan struct{})
	s.Inject(func(remotetest.Request) remotetest.Fault {
		return remotetest.Fault{Response: remotetest.Trouble{After: 5, Do: func() { close(at) }, Stall: true}}
	})
	cmd := testenv.Git(t, "", "ls-remote", s.URL("notes"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-at
	s.Close() // must not block
	if cmd.Wait() == nil {
		t.Error("a stalled answer was whole")
	}
}
