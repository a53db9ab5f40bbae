package upstream_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"satchel/gitstore/gitcmd"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/testenv"
)

// noise returns n bytes that cannot be compressed.
func noise(seed byte, n int) string {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return string(b)
}

// sent returns how many bytes a server sent since the last call.
func sent(s *remotetest.Server) (n int64) {
	s.Idle()
	for _, r := range s.Requests() {
		n += r.Sent
	}
	s.Forget()
	return n
}

// A small directory of a large repository costs little where the server can leave contents out, and a
// sync fetches only the contents that are new. Other servers send everything.
func TestGitFetchesOnlyWhatItTakes(t *testing.T) {
	for name, c := range map[string]struct {
		config  []string // set to true
		old     bool     // the protocol
		partial bool
	}{
		"a server with filters":                          {[]string{"uploadpack.allowFilter"}, false, true},
		"a server without filters":                       {nil, false, false},
		"an old server":                                  {nil, true, false},
		"an old server with filters":                     {[]string{"uploadpack.allowFilter"}, true, false},
		"an old server with filters that sends contents": {[]string{"uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := remotetest.New(t, remotetest.Options{OldProtocol: c.old})
			server.Create("r")
			all := map[string]string{"docs/a.md": "a", "docs/b.md": "b", "docs/same.md": "b"}
			for i := range 40 {
				all[fmt.Sprintf("src/%d", i)] = noise(byte(i), 20_000)
			}
			server.Push("r", "main", all)
			for _, key := range c.config {
				server.Git("r", "config", key, "true")
			}
			env, s := newEnv(t), &sink{}
			u := open(t, "git", fmt.Sprintf(`{"url": %q, "content_path": "docs"}`, server.URL("r")))
			sync(t, env, u, s)
			if want := map[string]string{"a.md": "a", "b.md": "b", "same.md": "b"}; !maps.Equal(s.content, want) {
				t.Errorf("got %q", s.content)
			}
			if n := sent(server); (n < 100_000) != c.partial {
				t.Errorf("the first sync cost %d bytes", n)
			}
			server.Push("r", "main", map[string]string{"docs/c.md": noise(99, 20_000), "docs/a.md": remotetest.Gone})
			sync(t, env, u, s)
			if s.put != 1 || s.kept != 2 || len(s.content["c.md"]) != 20_000 {
				t.Errorf("put %d, kept %d", s.put, s.kept)
			}
			if n := sent(server); (n < 100_000) != c.partial {
				t.Errorf("the second sync cost %d bytes", n)
			}
		})
	}
}

// A repository over the limit is refused, unless the source takes a small directory of it and the
// server can leave the rest out.
func TestGitLimits(t *testing.T) {
	server := remotetest.New(t, remotetest.Options{})
	server.Create("r")
	server.Push("r", "main", map[string]string{"docs/a.md": "a", "large/b": noise(1, 900_000), "large/c": noise(2, 900_000)})
	env := newEnv(t)
	env.MaxBytes = 500_000
	fetch := func(settings string) error {
		t.Helper()
		s := &sink{}
		s.next()
		_, err := open(t, "git", fmt.Sprintf(`{"url": %q%s}`, server.URL("r"), settings)).Fetch(t.Context(), env, s)
		return err
	}
	for _, filters := range []string{"false", "true"} {
		server.Git("r", "config", "uploadpack.allowFilter", filters)
		if err := fetch(""); fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("everything, filters %s: %v", filters, err)
		}
		if err := fetch(`, "content_path": "docs"`); fault.CodeOf(err) == fault.TooLarge == (filters == "true") {
			t.Errorf("a directory, filters %s: %v", filters, err)
		}
	}
}

// A server that sends nothing further does not hold a sync for ever.
func TestGitGivesUpOnASilentServer(t *testing.T) {
	server := remotetest.New(t, remotetest.Options{})
	server.Create("r")
	server.Push("r", "main", map[string]string{"a.md": "a"})
	git := gitcmd.Runner{Program: testenv.NeedProgram(t, "git")}
	c := transport.New(transport.Options{Git: git, ListTimeout: 50 * time.Millisecond, StallTimeout: 50 * time.Millisecond})
	t.Cleanup(func() { c.Close() })
	env := newEnv(t)
	env.Remotes = c
	u := open(t, "git", fmt.Sprintf(`{"url": %q, "branch": "main"}`, server.URL("r")))
	for _, stage := range []remotetest.Stage{remotetest.StageFetchRefs, remotetest.StageFetch} {
		server.Inject(func(r remotetest.Request) remotetest.Fault {
			if r.Stage != stage {
				return remotetest.Fault{}
			}
			return remotetest.Fault{Response: remotetest.Trouble{After: 10, Stall: true}}
		})
		s := &sink{}
		s.next()
		if _, err := u.Fetch(t.Context(), env, s); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", stage, err)
		}
		if stage == remotetest.StageFetchRefs {
			if _, err := u.Check(t.Context(), env); fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("check: %v", err)
			}
		}
	}
}
