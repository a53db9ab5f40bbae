package remotes_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/gitstore/remotes"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

func TestEmptyRemoteGetsAll(t *testing.T) {
	r := newReal(t, nil)
	st := r.set(remotes.SetRequest{})
	if st.Remote.Branch != "main" || st.LastSync.IsZero() || st.LastCheck.IsZero() {
		t.Errorf("%+v", st)
	}
	r.inStep("main")
	r.write(map[string]string{"b.md": "b\n"})
	if st := r.inStep("main"); len(st.Notes) != 0 {
		t.Errorf("%q", st.Notes)
	}
}

// The first sync of a space that only has its starting files takes over the remote's history.
func TestFreshSpaceTakesTheRemote(t *testing.T) {
	r := newReal(t, nil)
	r.remote.Push("notes", "main", map[string]string{"there.md": "there\n"})
	r.set(remotes.SetRequest{})
	r.inStep("main")
	if got := r.files(); !slices.Contains(got, "there.md") {
		t.Errorf("%q", got)
	}
}

func TestTakesChangesOfOthers(t *testing.T) {
	r := newReal(t, nil)
	r.set(remotes.SetRequest{})
	r.remote.Push("notes", "main", map[string]string{"there.md": "there\n"})
	r.inStep("main")
	r.remote.Push("notes", "main", map[string]string{"there.md": remotetest.Gone, "more.md": "more\n"})
	r.write(map[string]string{"mine.md": "mine\n"})
	r.inStep("main")
	if got := r.files(); !slices.Equal(got, []string{"here.md", "mine.md", "more.md"}) {
		t.Errorf("%q", got)
	}
	if n := r.notices(); n != "" {
		t.Errorf("a merge without conflicts is no news: %s", n)
	}
}

// If both sides changed the same lines, both versions stay, and everybody is notified once.
func TestConflict(t *testing.T) {
	r := newReal(t, nil)
	r.set(remotes.SetRequest{})
	resume, err := r.Pause(t.Context(), r.id)
	if err != nil {
		t.Fatal(err)
	}
	r.remote.Push("notes", "main", map[string]string{"here.md": "theirs\n"})
	r.write(map[string]string{"here.md": "ours\n"})
	resume()
	st := r.inStep("main")
	var kept string
	for _, f := range r.files() {
		if space.IsConflictCopy(space.Path(f)) {
			kept = f
		}
	}
	theirs, _ := r.remote.File("notes", "main", "here.md")
	ours, _ := r.remote.File("notes", "main", kept)
	if theirs != "theirs\n" || ours != "ours\n" {
		t.Errorf("%q %q: %q", theirs, kept, ours)
	}
	n := r.notices()
	if !strings.Contains(n, "here.md") || !strings.Contains(n, kept) || len(st.Notes) != 1 {
		t.Errorf("%q %q", n, st.Notes)
	}
	if n := r.notices(); n != "" {
		t.Errorf("told twice: %q", n)
	}
	if n := r.Notices(r.id, "u_bob"); len(n) != 1 {
		t.Errorf("another person was told %q", n)
	}
	c, err := r.store.Show(t.Context(), r.id, st.Head)
	if err != nil || !strings.Contains(c.Message, kept) {
		t.Errorf("the merge says %q, %v", c.Message, err)
	}
}

// A branch that was deleted at the remote is created again, and nothing is deleted here.
func TestDeletedBranch(t *testing.T) {
	r := newReal(t, nil)
	r.remote.Push("notes", "main", map[string]string{"readme.md": "x\n"})
	r.set(remotes.SetRequest{Branch: "satchel"})
	r.write(map[string]string{"mine.md": "mine\n"})
	r.inStep("satchel")
	r.remote.Git("notes", "update-ref", "-d", "refs/heads/satchel")
	r.inStep("satchel")
	if n := r.notices(); !strings.Contains(n, "had been deleted") || !strings.Contains(n, "satchel") {
		t.Errorf("%q", n)
	}
}

func TestEmptiedRepository(t *testing.T) {
	r := newReal(t, nil)
	r.set(remotes.SetRequest{})
	r.write(map[string]string{"mine.md": "mine\n"})
	r.inStep("main")
	r.remote.Remove("notes")
	r.remote.Create("notes")
	r.inStep("main")
	if n := r.notices(); !strings.Contains(n, "had been emptied") {
		t.Errorf("%q", n)
	}
}

// A default branch that is renamed is followed, with or without new commits.
func TestRenamedDefaultBranch(t *testing.T) {
	for _, news := range []bool{false, true} {
		r := newReal(t, nil)
		r.set(remotes.SetRequest{})
		r.inStep("main")
		r.remote.Git("notes", "branch", "-m", "main", "trunk")
		r.remote.Git("notes", "symbolic-ref", "HEAD", "refs/heads/trunk")
		if news {
			r.remote.Push("notes", "trunk", map[string]string{"news.md": "news\n"})
		}
		st := r.inStep("trunk")
		if st.Remote.Branch != "trunk" || r.remote.Head("notes", "main") != "" {
			t.Errorf("%+v; main is at %q", st.Remote, r.remote.Head("notes", "main"))
		}
		if n := r.notices(); !strings.Contains(n, "now called “trunk”") {
			t.Errorf("%q", n)
		}
		r.write(map[string]string{"mine.md": "mine\n"})
		r.inStep("trunk")
	}
}

// Another default branch is only followed if it is a new name of our branch, and never if a
// person chose the branch.
func TestOtherDefaultBranchIsNotFollowed(t *testing.T) {
	for _, chosen := range []bool{false, true} {
		r := newReal(t, nil)
		req := remotes.SetRequest{}
		if chosen {
			req.Branch = "main"
		}
		r.set(req)
		r.inStep("main")
		if chosen {
			r.remote.Git("notes", "branch", "trunk", "main")
		} else {
			r.remote.Push("notes", "trunk", map[string]string{"foreign.md": "foreign\n"})
		}
		r.remote.Git("notes", "symbolic-ref", "HEAD", "refs/heads/trunk")
		r.remote.Git("notes", "update-ref", "-d", "refs/heads/main")
		r.inStep("main")
		if got := r.files(); slices.Contains(got, "foreign.md") {
			t.Errorf("%q", got)
		}
	}
}

// A force-push never drops commits of the space: both histories are merged.
func TestForcePush(t *testing.T) {
	r := newReal(t, nil)
	r.set(remotes.SetRequest{})
	first := r.remote.Head("notes", "main")
	r.write(map[string]string{"mine.md": "mine\n"})
	r.inStep("main")
	rewritten := r.remote.Commit("notes", first, first, map[string]string{"theirs.md": "theirs\n"})
	r.remote.Git("notes", "update-ref", "refs/heads/main", rewritten)
	st := r.inStep("main")
	if got := r.files(); !slices.Equal(got, []string{"here.md", "mine.md", "theirs.md"}) {
		t.Errorf("%q", got)
	}
	if n := r.notices(); !strings.Contains(n, "was rewritten") || len(st.Notes) != 1 {
		t.Errorf("%q", n)
	}
}

// The same applies to a history without a common commit.
func TestForcePushOfAnotherHistory(t *testing.T) {
	r := newReal(t, nil)
	r.set(remotes.SetRequest{})
	r.write(map[string]string{"mine.md": "mine\n"})
	r.inStep("main")
	r.remote.Git("notes", "update-ref", "refs/heads/main", r.remote.Commit("notes", "", "", map[string]string{"theirs.md": "theirs\n"}))
	r.inStep("main")
	if got := r.files(); !slices.Equal(got, []string{"here.md", "mine.md", "theirs.md"}) {
		t.Errorf("%q", got)
	}
	if n := r.notices(); !strings.Contains(n, "was rewritten") {
		t.Errorf("%q", n)
	}
}

// On a person's explicit request, the space takes over the remote's content. The old content is
// kept, and later changes are merged as usual.
func TestReplace(t *testing.T) {
	r := newReal(t, nil)
	r.remote.Push("notes", "main", map[string]string{"theirs.md": "theirs\n"})
	r.write(map[string]string{"mine.md": "mine\n"})
	left, err := r.store.Head(t.Context(), r.id)
	if err != nil {
		t.Fatal(err)
	}
	r.set(remotes.SetRequest{Replace: true})
	r.inStep("main")
	if got := r.files(); !slices.Equal(got, []string{"theirs.md"}) {
		t.Errorf("%q", got)
	}
	if n := r.notices(); !strings.Contains(n, left.Short()) {
		t.Errorf("%q", n)
	}
	if _, _, err := r.store.Open(t.Context(), r.id, left, "mine.md"); err != nil {
		t.Errorf("what the space was: %v", err)
	}
	r.write(map[string]string{"again.md": "mine\n"})
	r.inStep("main")
	r.remote.Push("notes", "main", map[string]string{"late.md": "theirs\n"})
	r.write(map[string]string{"more.md": "mine\n"})
	r.inStep("main")
	if got := r.files(); !slices.Equal(got, []string{"again.md", "late.md", "more.md", "theirs.md"}) {
		t.Errorf("what came later was not merged: %q", got)
	}
}

// A shallow clone cannot be fetched from. A space that is in step can still push to it.
func TestShallowRemote(t *testing.T) {
	r := newReal(t, nil)
	r.remote.Push("notes", "main", map[string]string{"a.md": "1\n"})
	tip := r.remote.Push("notes", "main", map[string]string{"a.md": "2\n"})
	if err := os.WriteFile(filepath.Join(r.remote.Dir("notes"), "shallow"), []byte(tip+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	st := r.set(remotes.SetRequest{})
	if st.State != space.RemoteFailed || st.Problem != transport.Shallow || !strings.Contains(st.Remedy, "--unshallow") {
		t.Errorf("%+v", st)
	}
}

// A wrong token is reported as such; a valid one syncs at once.
func TestWrongToken(t *testing.T) {
	r := newReal(t, nil)
	r.remote.SetCredential("", "right")
	st := r.set(remotes.SetRequest{Secret: "wrong"})
	if st.State != space.RemoteFailed || st.Problem != transport.Auth || st.Unpushed != 1 || st.Remote.Kind != space.KindToken {
		t.Errorf("%+v", st)
	}
	r.set(remotes.SetRequest{Secret: "right"})
	r.inStep("main")
	// Without a token, the stored one stays.
	r.set(remotes.SetRequest{Username: "ann"})
	r.inStep("main")
	r.remote.Forget()
	r.write(map[string]string{"a.md": "a\n"})
	r.inStep("main")
	if !slices.ContainsFunc(r.remote.Requests(), func(q remotetest.Request) bool {
		user, pass, _ := (&http.Request{Header: q.Header}).BasicAuth()
		return user == "ann" && pass == "right"
	}) {
		t.Error("the token did not reach the remote with its user name")
	}
}

// A Retry-After can also be a date.
func TestRetryAfterDate(t *testing.T) {
	r := newReal(t, nil)
	at := time.Now().Add(10 * time.Minute).Truncate(time.Second)
	r.remote.Inject(func(q remotetest.Request) remotetest.Fault {
		return remotetest.RateLimited(at.UTC().Format(http.TimeFormat))
	})
	st := r.set(remotes.SetRequest{})
	if st.Problem != transport.RateLimited || st.NextTry.Before(at.Add(-time.Minute)) || st.NextTry.After(at.Add(2*time.Minute)) {
		t.Errorf("%+v; asked to wait until %v", st, at)
	}
	r.remote.Inject(nil)
	r.inStep("main")
}

// Findings of GitHub's push protection are reported by file and line; when they are
// resolved, everything is pushed.
func TestPushProtection(t *testing.T) {
	r := newReal(t, nil)
	r.set(remotes.SetRequest{})
	c := r.write(map[string]string{"keys.md": "x\n"})
	r.sync()
	c = r.write(map[string]string{"keys.md": "y\n"})
	r.remote.Refuse("notes", "main", remotetest.PushProtection("main", string(c.ID), "keys.md", 3))
	r.write(map[string]string{"z.md": "z\n"})
	st := r.sync()
	for st.Problem == "" { // a push may succeed before the refusal is set up
		r.write(map[string]string{"z.md": time.Now().String()})
		st = r.sync()
	}
	if st.State != space.RemoteFailed || st.Problem != transport.Secret || len(st.Locations) == 0 || st.Locations[0].Path != "keys.md" || st.Locations[0].Line != 3 {
		t.Errorf("%+v", st)
	}
	if got := r.Trouble(r.id); !strings.Contains(got, "keys.md") || !strings.Contains(got, "satchel space purge") {
		t.Errorf("%q", got)
	}
}

// Pause ends a transfer that hangs at once. The transfer continues after the pause.
func TestPauseEndsATransfer(t *testing.T) {
	r := newReal(t, nil)
	hangs := make(chan struct{}, 100)
	r.remote.Inject(func(q remotetest.Request) remotetest.Fault {
		if q.Stage != remotetest.StagePush {
			return remotetest.Fault{}
		}
		return remotetest.Fault{Request: remotetest.Trouble{Stall: true, Do: func() { hangs <- struct{}{} }}}
	})
	if err := r.Set(t.Context(), remotes.SetRequest{Space: r.id, URL: r.remote.URL("notes"), Trusted: true}); err != nil {
		t.Fatal(err)
	}
	<-hangs
	if st, err := r.Status(t.Context(), r.id); err != nil || st.State != space.RemoteSyncing {
		t.Errorf("%+v %v", st, err)
	}
	resume, err := r.Pause(t.Context(), r.id)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := r.Status(t.Context(), r.id); err != nil || st.State != space.RemoteQueued || st.Attempts != 0 {
		t.Errorf("%+v %v", st, err)
	}
	r.remote.Inject(nil)
	resume()
	r.inStep("main")
}

// If a process ended between a fetch and its merge, the next process merges.
func TestFetchedAndNotMerged(t *testing.T) {
	r := newReal(t, nil)
	r.set(remotes.SetRequest{})
	resume, err := r.Pause(t.Context(), r.id)
	if err != nil {
		t.Fatal(err)
	}
	tip := r.remote.Push("notes", "main", map[string]string{"there.md": "there\n"})
	got, err := r.store.Fetch(t.Context(), r.id, transport.Endpoint{URL: r.remote.URL("notes"), Trusted: true}, "main", nil)
	if err != nil || string(got.Tip) != tip {
		t.Fatal(got, err)
	}
	st, err := r.Status(t.Context(), r.id)
	if err != nil || st.State == space.RemotePushed || string(st.Pushed) != tip || st.Unpushed != 0 {
		t.Errorf("%+v %v", st, err)
	}
	next := remotes.New(r.o)
	if err := next.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st, err = next.Sync(t.Context(), r.id, nil); err != nil || st.State != space.RemotePushed || string(st.Head) != tip {
		t.Errorf("%+v %v", st, err)
	}
	if err := next.Close(t.Context()); err != nil {
		t.Error(err)
	}
	resume()
}
