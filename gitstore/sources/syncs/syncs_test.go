package syncs_test

import (
	"fmt"
	"strings"
	"testing"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/sources/syncs"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// Readers see what upstream has after each of its revisions, and a sync writes only what changed.
func TestASourceFollowsItsUpstream(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { followUpstream(t, newBench(t)) })
	t.Run("postgres", func(t *testing.T) {
		url := databasetest.Postgres(t)
		followUpstream(t, newBenchIn(t, t.TempDir(), url, url))
	})
}

func followUpstream(t *testing.T, b *bench) {
	b.server.Push("docs", "main", map[string]string{"README.md": "# Docs\n", "a/b.md": "b\r\n", "a/c.md": "c", "empty.md": ""})
	b.add()
	for i, step := range []struct {
		change map[string]string
		want   space.SyncCounts
	}{
		{nil, space.SyncCounts{Added: 4}},
		{map[string]string{"a/b.md": "changed\n", "a/d.md": "new", "empty.md": remotetest.Gone}, space.SyncCounts{Added: 1, Changed: 1, Deleted: 1}},
		{map[string]string{"a/c.md": remotetest.Gone, "moved/c.md": "c"}, space.SyncCounts{Renamed: 1}},
		{map[string]string{"a/b.md": remotetest.Gone, "a/d.md": remotetest.Gone, "a": "now a file"}, space.SyncCounts{Added: 1, Deleted: 2}},
	} {
		version := b.server.Head("docs", "main")
		if step.change != nil {
			version = b.server.Push("docs", "main", step.change)
		}
		r := b.sync()
		files := upstreamFiles(b.server)
		step.want.Files = len(files)
		r.Bytes = 0
		if r.State != space.SyncReady || r.Version != version || r.Added != step.want.Added || r.Changed != step.want.Changed ||
			r.Deleted != step.want.Deleted || r.Renamed != step.want.Renamed || r.Files != step.want.Files {
			t.Errorf("step %d: %+v", i, r)
		}
		b.wantShown(files)
		c, err := b.git.Show(b.ctx, b.space, r.Commit)
		must(t, err)
		if c.Tool != "sync" || !strings.Contains(c.Message, version) || !strings.HasPrefix(c.Message, "Sync handbook: ") {
			t.Errorf("step %d: the commit says %q", i, c.Message)
		}
		if want := step.want.Added + step.want.Changed + step.want.Deleted + 2*step.want.Renamed; len(c.Files) != want {
			t.Errorf("step %d: the commit has %d files, want %d", i, len(c.Files), want)
		}
	}
}

// A sync without changes commits nothing, and is not part of the history of runs.
func TestASyncWithoutChangesLeavesNoTrace(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", pages(3, "one"))
	b.add()
	first := b.sync()
	for _, flag := range []string{"", "confirm"} {
		if r := b.sync(flag); r.State != space.SyncUnchanged || r.Commit != first.Commit {
			t.Errorf("%q: %+v", flag, r)
		}
	}
	if r := b.sync("reset"); r.State != space.SyncReady || r.Commit != first.Commit {
		t.Errorf("reset: %+v", r)
	}
	st, err := b.Status(b.ctx, "handbook")
	must(t, err)
	if len(st.Runs) != 2 || st.State != space.SyncReady || st.Checked.IsZero() || st.Next.IsZero() {
		t.Errorf("%+v", st)
	}
}

// Each failure of upstream has its state, and the last good version stays.
func TestFailuresKeepTheLastGoodVersion(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", pages(4, "one"))
	b.add()
	b.sync()
	good := upstreamFiles(b.server)
	b.server.Push("docs", "main", pages(4, "two"))
	for state, f := range map[space.SyncState]remotetest.Fault{
		space.SyncFailed:  remotetest.Status(500, "no"),
		space.SyncLimited: remotetest.RateLimited("7"),
		space.SyncGone:    remotetest.NotFound(),
		space.SyncRefused: remotetest.Unauthorized(),
	} {
		b.server.Inject(func(remotetest.Request) remotetest.Fault { return f })
		b.server.Forget()
		r := b.sync()
		if r.State != state || r.Problem == "" {
			t.Errorf("%s: %+v", state, r)
		}
		if n := len(b.server.Requests()); (n > 1) != (state == space.SyncFailed) {
			t.Errorf("%s: %d requests", state, n)
		}
		b.wantShown(good)
		s, err := b.sources.Find("handbook")
		must(t, err)
		problem := r.Problem
		if state == space.SyncFailed || state == space.SyncLimited {
			problem += " Satchel tries again later."
		}
		if b.Overlay(&s); s.State != space.SourceFailed || s.Problem != problem {
			t.Errorf("%s: the source is %s: %s", state, s.State, s.Problem)
		}
		b.server.Inject(nil)
	}
	if r := b.sync(); r.State != space.SyncReady {
		t.Errorf("afterwards: %+v", r)
	}
	b.wantShown(upstreamFiles(b.server))
}

// A sync that would remove most files changes nothing until a person confirms it.
func TestAShrunkUpstreamNeedsAConfirmation(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", pages(5, "one"))
	b.add()
	b.sync()
	good := upstreamFiles(b.server)
	gone := map[string]string{}
	for i := range 3 {
		gone[fmt.Sprintf("guide/page-%03d.md", i)] = remotetest.Gone
	}
	b.server.Push("docs", "main", gone)
	for range 2 {
		if r := b.sync(); r.State != space.SyncStopped || r.Problem == "" {
			t.Errorf("%+v", r)
		}
		b.wantShown(good)
	}
	p, err := b.DryRun(b.ctx, "handbook", func(space.SyncProgress) {})
	must(t, err)
	if p.Deleted != 3 || p.Files != 2 {
		t.Errorf("dry run: %+v", p)
	}
	b.wantShown(good)
	if r := b.sync("confirm"); r.State != space.SyncReady || r.Deleted != 3 {
		t.Errorf("%+v", r)
	}
	b.wantShown(upstreamFiles(b.server))
}

func TestAForcePushedUpstreamReplacesTheVersion(t *testing.T) {
	b := newBench(t)
	first := b.server.Push("docs", "main", pages(3, "one"))
	b.server.Push("docs", "main", pages(3, "two"))
	b.add()
	b.sync()
	other := b.server.Commit("docs", "", "", pages(4, "three"))
	b.server.Git("docs", "update-ref", "refs/heads/main", other)
	if r := b.sync(); r.State != space.SyncReady || r.Version != other || r.Added != 1 || r.Changed != 3 {
		t.Errorf("%+v", r)
	}
	b.server.Git("docs", "update-ref", "refs/heads/main", first)
	if r := b.sync(); r.State != space.SyncReady || r.Version != first {
		t.Errorf("%+v", r)
	}
	b.wantShown(pages(3, "one"))
}

// The schedule runs the first sync of a new source.
func TestTheScheduleRunsSyncs(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", pages(3, "one"))
	b.Start()
	b.add()
	testenv.WaitFor(t, "the first sync", func() bool {
		st, err := b.Status(b.ctx, "handbook")
		must(t, err)
		return st.State == space.SyncReady && st.Running == nil
	})
	b.wantShown(pages(3, "one"))
}

// A canceled sync changes nothing.
func TestCancel(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", pages(3, "one"))
	b.add()
	b.sync()
	b.server.Push("docs", "main", pages(3, "two"))
	wantCode(t, "without a run", b.Cancel(b.ctx, "handbook"), fault.Conflict)
	asked, release := make(chan struct{}, 9), make(chan struct{})
	defer close(release)
	b.server.Inject(func(remotetest.Request) remotetest.Fault {
		asked <- struct{}{}
		<-release
		return remotetest.Fault{}
	})
	must(t, b.Begin(b.ctx, "handbook", false, false))
	testenv.Receive(t, "a request", asked)
	wantCode(t, "a reset beside a run", b.Begin(b.ctx, "handbook", true, false), fault.Conflict)
	must(t, b.Cancel(b.ctx, "handbook"))
	st, err := b.Status(b.ctx, "handbook")
	must(t, err)
	if st.Running != nil || st.Runs[0].State != space.SyncCanceled || st.State != space.SyncReady {
		t.Errorf("%+v", st)
	}
	b.wantShown(pages(3, "one"))
}

func TestPreview(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", pages(300, "one"))
	p, err := b.Preview(b.ctx, b.setting(), none)
	must(t, err)
	if p.Kind != "git" || p.Files != 300 || !p.More || len(p.Titles) == 0 || p.Bytes == 0 {
		t.Errorf("%+v", p)
	}
	s := b.setting()
	s.Trusted = false
	_, err = b.Preview(b.ctx, s, none)
	wantCode(t, "an address that is not trusted", err, fault.Invalid)
}

func TestSettings(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", map[string]string{"a/x.md": "x", "b/y.md": "y"})
	b.add()
	b.sync()
	s := b.setting()
	s.Settings = []byte(`{"content_paht": "a"}`)
	_, err := b.Add(b.ctx, space.Source{ID: "other", Space: space.NewSpaceID()}, s)
	wantCode(t, "an unknown setting", err, fault.Invalid)
	_, err = b.Add(b.ctx, space.Source{ID: "handbook", Space: space.NewSpaceID()}, b.setting())
	wantCode(t, "a taken name", err, fault.Conflict)
	must(t, b.Change(b.ctx, "handbook", syncs.Setting{Settings: fmt.Appendf(nil, `{"url": %q, "content_path": "b"}`, b.server.URL("docs")), Trusted: true}))
	b.sync("confirm")
	b.wantShown(map[string]string{"y.md": "y"})
	must(t, b.Remove(b.ctx, "handbook"))
	_, err = b.sources.Find("handbook")
	wantCode(t, "the source", err, fault.NotFound)
	_, err = b.Status(b.ctx, "handbook")
	wantCode(t, "the sync", err, fault.NotFound)
}

func TestAllowed(t *testing.T) {
	list := []string{"docs.example.com", "github.com/nuxt/*", "git.example/team/docs", "www.youtube.com/@golang", "github.com/vue/core/tree/main/docs"}
	for settings, want := range map[string]bool{
		`{"url": "https://docs.example.com/x.git"}`:                               true,
		`{"url": "https://DOCS.example.com/x.git"}`:                               true,
		`{"url": "https://evil.example/docs.example.com"}`:                        false,
		`{"url": "http://docs.example.com/x.git"}`:                                false,
		`{"url": "https://docs.example.com:8443/x.git"}`:                          false,
		`{"url": "https://docs.example.com@evil.example/x.git"}`:                  false,
		`{"url": "https://git.example/team/docs.git"}`:                            true,
		`{"url": "https://git.example/team/docs2.git"}`:                           false,
		`{"url": "https://git.example/team/docs/../other"}`:                       false,
		`{"repo": "nuxt/nuxt"}`:                                                   true,
		`{"repo": "nuxt/nuxt", "additional_syncs": [{"repo": "evil/x"}]}`:         false,
		`{"repo": "nuxt/nuxt", "host": "ghe.example"}`:                            false,
		`{"repo": "nuxtx/nuxt"}`:                                                  false,
		`{"url": "https://git.example/Team/docs.git"}`:                            false,
		`{"url": "https://github.com/NUXT/Nuxt.git"}`:                             true,
		`{"url": "https://github.com/vue/core/tree/main/Docs"}`:                   false,
		`{"url": "https://github.com/Vue/Core/tree/main/docs"}`:                   true,
		`{"repo": "nuxt/nuxt", "host": "git.example"}`:                            false,
		`{"handle": "GoLang"}`:                                                    true,
		`{"handle": "other"}`:                                                     false,
		`{"channel_id": "UC0123456789abcdefghijkl"}`:                              false,
		`{"playlist": "PL0123456789"}`:                                            false,
		`{"url": "/srv/docs"}`:                                                    false,
		`{}`:                                                                      false,
		`{"urls": ["https://docs.example.com/a", "https://other.example.com/b"]}`: false,
	} {
		if got := syncs.Allowed(list, []byte(settings)); got != want {
			t.Errorf("%s: %v", settings, got)
		}
	}
}
