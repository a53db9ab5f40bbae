package upstream_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/sources/upstream"
	"satchel/internal/fault"
)

// sync fetches into s, and returns the state.
func sync(t *testing.T, env *upstream.Env, u upstream.Upstream, s *sink) upstream.State {
	t.Helper()
	s.next()
	state, err := u.Fetch(t.Context(), env, s)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(env.Scratch); err != nil || len(left) > 0 {
		t.Errorf("%d files are left over, %v", len(left), err)
	}
	return state
}

// A source has what upstream has after each of its revisions, and takes only what changed.
func TestGitFollowsTheRepository(t *testing.T) {
	server := remotetest.New(t, remotetest.Options{})
	server.Create("docs")
	env, s := newEnv(t), &sink{}
	u := open(t, "git", fmt.Sprintf(`{"url": %q, "content_path": "docs/"}`, server.URL("docs")))
	for i, step := range []struct {
		change    map[string]string
		want      map[string]string
		put, kept int
	}{
		{
			map[string]string{"README.md": "not in docs\n", "docs/a.md": "a\n", "docs/b/c.md": "c\r\n", "docs/empty": "", "docs/spaces und ü.md": "ü"},
			map[string]string{"a.md": "a\n", "b/c.md": "c\r\n", "empty": "", "spaces und ü.md": "ü"}, 4, 0,
		},
		{
			map[string]string{"docs/a.md": "changed\n", "docs/b/c.md": remotetest.Gone, "docs/b/d.md": "c\r\n", "other": "x"},
			map[string]string{"a.md": "changed\n", "b/d.md": "c\r\n", "empty": "", "spaces und ü.md": "ü"}, 2, 2,
		},
		{
			map[string]string{"docs/empty": remotetest.Gone},
			map[string]string{"a.md": "changed\n", "b/d.md": "c\r\n", "spaces und ü.md": "ü"}, 0, 3,
		},
	} {
		commit := server.Push("docs", "main", step.change)
		now, err := u.Check(t.Context(), env)
		if err != nil || string(now) != commit {
			t.Errorf("step %d: check found %q, %v", i, now, err)
		}
		if got := sync(t, env, u, s); got != now {
			t.Errorf("step %d: fetched %q", i, got)
		}
		if !maps.Equal(s.content, step.want) {
			t.Errorf("step %d: %q", i, s.content)
		}
		if s.put != step.put || s.kept != step.kept || s.expected != len(step.want) {
			t.Errorf("step %d: %d new, %d kept, %d expected", i, s.put, s.kept, s.expected)
		}
	}
}

func TestGitTakesPartsOfARepository(t *testing.T) {
	server := remotetest.New(t, remotetest.Options{})
	server.Create("r")
	server.Push("r", "main", map[string]string{"README.md": "r", "readme.txt": "t", "docs/README.md": "d", "large": strings.Repeat("x", 100)})
	server.Push("r", "next", map[string]string{"only.md": "n"})
	env := newEnv(t)
	env.MaxFileBytes = 50
	for settings, want := range map[string][]string{
		`"branch": "main"`:                                              {"README.md", "docs/README.md", "readme.txt"},
		`"branch": "main", "readme_only": true`:                         {"README.md", "readme.txt"},
		`"branch": "main", "content_path": "docs", "output_path": "in"`: {"in/README.md"},
		`"branch": "next"`:                                              {"only.md"},
		`"branch": "main", "content_path": "doc"`:                       nil,
	} {
		s := &sink{}
		sync(t, env, open(t, "git", fmt.Sprintf(`{"url": %q, %s}`, server.URL("r"), settings)), s)
		if got := s.paths(); !slices.Equal(got, want) {
			t.Errorf("%s: %q", settings, got)
		}
		if strings.HasSuffix(settings, `"main"`) && !slices.Contains(slices.Collect(maps.Values(s.skipped)), upstream.TooLarge) {
			t.Errorf("skipped %v", s.skipped)
		}
	}
}

// The code of an error decides whether the sync tries again.
func TestGitFailures(t *testing.T) {
	server := remotetest.New(t, remotetest.Options{})
	server.Create("r")
	server.Push("r", "main", map[string]string{"a.md": "a"})
	env := newEnv(t)
	for name, c := range map[string]struct {
		settings string
		fault    remotetest.Fault
		want     fault.Code
	}{
		"no such branch": {`"branch": "gone"`, remotetest.Fault{}, fault.NotFound},
		"refused":        {`"branch": "main"`, remotetest.Unauthorized(), fault.Forbidden},
		"vanished":       {`"branch": "main"`, remotetest.NotFound(), fault.NotFound},
		"limited":        {`"branch": "main"`, remotetest.RateLimited("7"), fault.Limited},
		"failing":        {`"branch": "main"`, remotetest.Status(500, "no"), fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			server.Inject(func(remotetest.Request) remotetest.Fault { return c.fault })
			defer server.Inject(nil)
			u := open(t, "git", fmt.Sprintf(`{"url": %q, %s}`, server.URL("r"), c.settings))
			if _, err := u.Check(t.Context(), env); fault.CodeOf(err) != c.want {
				t.Errorf("check: %v", err)
			}
			s := &sink{}
			s.next()
			if _, err := u.Fetch(t.Context(), env, s); fault.CodeOf(err) != c.want {
				t.Errorf("fetch: %v", err)
			}
			if len(s.files) > 0 {
				t.Errorf("got %q", s.paths())
			}
		})
	}
}
