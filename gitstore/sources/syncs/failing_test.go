package syncs_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/sources/syncs"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// random returns n bytes that cannot be compressed.
func random(seed byte, n int) string {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return string(b)
}

// Each trouble of a git server has its state, and says what to do. Readers keep the last good
// version, and the first sync after the trouble has the new one.
func TestTroublesOfAGitServer(t *testing.T) {
	b := newBenchWith(t, func(o *syncs.Options) { o.Env.MaxBytes = 1 << 20 })
	b.server.Push("docs", "main", pages(30, "one"))
	b.add()
	b.sync()
	inPack := func(trouble remotetest.Trouble) func() func() {
		return func() func() {
			b.server.Inject(func(r remotetest.Request) remotetest.Fault {
				if r.Stage != remotetest.StageFetch {
					return remotetest.Fault{}
				}
				return remotetest.Fault{Response: trouble}
			})
			return func() { b.server.Inject(nil) }
		}
	}
	answer := func(f remotetest.Fault) func() func() {
		return func() func() {
			b.server.Inject(func(remotetest.Request) remotetest.Fault { return f })
			return func() { b.server.Inject(nil) }
		}
	}
	limited := remotetest.Status(http.StatusForbidden, "API rate limit exceeded.\n")
	limited.Answer.Header = http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {fmt.Sprint(time.Now().Add(2 * time.Hour).Unix())}}
	silent := remotetest.Status(http.StatusForbidden, "")
	silent.Answer.Header = http.Header{"X-Ratelimit-Remaining": {"0"}}
	for i, c := range []struct {
		name  string
		harm  func() (heal func())
		state space.SyncState
		wait  time.Duration // until the next sync, at least
	}{
		{"the limit of GitHub", answer(limited), space.SyncLimited, time.Hour},
		{"the limit of GitHub, without a time", answer(silent), space.SyncLimited, 0},
		{"a later time", answer(remotetest.RateLimited("3600")), space.SyncLimited, 50 * time.Minute},
		{"a web site instead of a repository", answer(remotetest.Status(200, "Welcome")), space.SyncFailed, 0},
		{"a moved repository", answer(remotetest.Redirect(301, "https://elsewhere.example/docs.git/info/refs?service=git-upload-pack")), space.SyncGone, time.Hour},
		{"a pack that ends early", inPack(remotetest.Trouble{After: 20_000, Truncate: true}), space.SyncFailed, 0},
		{"a connection that breaks", inPack(remotetest.Trouble{After: 20_000, Cut: true, Reset: true}), space.SyncFailed, 0},
		{"a damaged pack", inPack(remotetest.Trouble{After: 20_000, Corrupt: true}), space.SyncFailed, 0},
		{"a deleted branch", func() func() {
			at := b.server.Head("docs", "main")
			b.server.Git("docs", "update-ref", "refs/heads/other", at)
			b.server.Git("docs", "update-ref", "-d", "refs/heads/main")
			return func() { b.server.Git("docs", "update-ref", "refs/heads/main", at) }
		}, space.SyncGone, time.Hour},
		{"an empty repository", func() func() {
			at := b.server.Head("docs", "main")
			b.server.Git("docs", "update-ref", "-d", "refs/heads/main")
			b.server.Git("docs", "update-ref", "-d", "refs/heads/other")
			return func() { b.server.Git("docs", "update-ref", "refs/heads/main", at) }
		}, space.SyncGone, time.Hour},
		{"a vanished repository", func() func() {
			must(t, os.Rename(b.server.Dir("docs"), b.server.Dir("docs")+".gone"))
			return func() { must(t, os.Rename(b.server.Dir("docs")+".gone", b.server.Dir("docs"))) }
		}, space.SyncGone, time.Hour},
		{"a repository over the limit", func() func() {
			at := b.server.Head("docs", "main")
			b.server.Push("docs", "main", map[string]string{"large": random(99, 3<<20)})
			return func() { b.server.Git("docs", "update-ref", "refs/heads/main", at) }
		}, space.SyncRefused, time.Hour},
		{"a branch without files", func() func() {
			at := b.server.Head("docs", "main")
			b.server.Git("docs", "update-ref", "refs/heads/main", b.server.Commit("docs", "", "4b825dc642cb6eb9a060e54bf8d69288fbee4904", nil))
			return func() { b.server.Git("docs", "update-ref", "refs/heads/main", at) }
		}, space.SyncStopped, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			good, err := b.shown(b.ctx)
			must(t, err)
			change := pages(30, fmt.Sprint("revision ", i))
			change["picture"] = random(byte(i), 50_000)
			b.server.Push("docs", "main", change)
			heal := c.harm()
			began := time.Now()
			r, err := b.Sync(b.ctx, "handbook", false, false, func(space.SyncProgress) {})
			must(t, err)
			if r.State != c.state || r.Problem == "" {
				t.Errorf("%s: %s", r.State, r.Problem)
			}
			st, err := b.Status(b.ctx, "handbook")
			must(t, err)
			if st.State != c.state || st.Problem != r.Problem || st.Next.Before(began.Add(c.wait)) {
				t.Errorf("%s, next at %s", st.State, st.Next)
			}
			b.wantShown(good)
			b.server.Idle()
			heal()
			if r := b.sync(); r.State != space.SyncReady {
				t.Errorf("afterwards: %+v", r)
			}
			b.wantShown(upstreamFiles(b.server))
		})
	}
}

// Files that a source cannot hold are left out, and the others come.
func TestUnusualFilesOfARepository(t *testing.T) {
	b := newBenchWith(t, func(o *syncs.Options) { o.Env.MaxFileBytes = 10_000 })
	b.server.Push("docs", "main", map[string]string{
		"a.md": "a", "Case.md": "upper", "case.md": "lower", "crlf.md": "a\r\nb\r\n", "no-end.md": "x", "ünï.md": "ü", "bytes.bin": "\x00\xff",
		"large.md": random(0, 20_000), ".hidden": "h",
		"lfs.png":        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n",
		"bad\x01name.md": "control", ".gitmodules": "[submodule \"sub\"]\n\tpath = sub\n\turl = https://example.com/sub.git\n",
	})
	want := map[string]string{
		"a.md": "a", "Case.md": "upper", "case.md": "lower", "crlf.md": "a\r\nb\r\n", "no-end.md": "x", "ünï.md": "ü", "bytes.bin": "\x00\xff", ".hidden": "h",
	}
	want[".gitmodules"], _ = b.server.File("docs", "main", ".gitmodules")
	want["run.sh"] = "a" // which may be executed upstream
	blob, commit := b.server.Git("docs", "rev-parse", "main:a.md"), b.server.Head("docs", "main")
	list := b.server.Git("docs", "ls-tree", "-z", "main") + "120000 blob " + blob + "\tlink\x00160000 commit " + commit + "\tsub\x00100755 blob " + blob + "\trun.sh\x00"
	mktree := func(list string) string {
		cmd := testenv.Git(t, b.server.Dir("docs"), "mktree", "-z")
		cmd.Stdin = strings.NewReader(list)
		tree, err := cmd.Output()
		must(t, err)
		return strings.TrimSpace(string(tree))
	}
	tree := mktree("040000 tree " + mktree(list) + "\tin\x00")
	b.server.Git("docs", "update-ref", "refs/heads/main", b.server.Git("docs", "commit-tree", tree, "-p", commit, "-m", "Unusual files"))
	for _, filter := range []string{"false", "true"} {
		b.server.Git("docs", "config", "uploadpack.allowFilter", filter)
		if b.space == "" {
			b.add()
			must(t, b.Change(b.ctx, "handbook", syncs.Setting{Settings: fmt.Appendf(nil, `{"url": %q, "content_path": "in"}`, b.server.URL("docs")), Trusted: true}))
		}
		r := b.sync("reset")
		if r.State != space.SyncReady || r.Skipped["too_large"] != 1 || r.Skipped["lfs"] != 1 || r.Skipped["bad_name"] != 1 {
			t.Errorf("%+v", r)
		}
		b.wantShown(want)
	}
}
