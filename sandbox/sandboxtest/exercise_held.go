package sandboxtest

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/seal"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/pending"
)

func openPending(t testing.TB) *pending.Store {
	t.Helper()
	dir := t.TempDir()
	box, err := seal.Load(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := pending.Open(pending.Options{Dir: filepath.Join(dir, "held"), Seal: box, MaxBytes: 200_000, MaxFiles: 100})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// smallFiles limits committed files to 1,000 bytes, and pending files to 100,000.
func smallFiles(o *sandbox.Options) { o.MaxFile, o.MaxPendingFile = 1000, 100_000 }

// pendingChecks are about files that could not be committed.
var pendingChecks = []check{
	{name: "what cannot be committed outlives its sandbox and is named in every answer", real: true, pending: true, options: smallFiles, run: func(e *exercise) {
		e.refuse("secret.sh", "docs/a.md")
		r := e.sh(`printf 'key\n' > secret.sh; chmod +x secret.sh; printf 'edited\n' > docs/a.md
			mkdir -p x/.git; echo config > x/.git/config; head -c 5000 /dev/zero > large
			ln -s /etc/passwd abs; printf n > $'new\nline'; echo fine > fine`)
		want := []string{"abs", "docs/a.md", "large", "new\nline", "secret.sh", "x/.git"}
		e.wantPending(r, want...)
		if got := paths(r.Commits); !slices.Equal(got, []space.Path{"fine"}) {
			e.Errorf("committed %q", got)
		}
		for _, command := range []string{"true", "exit 3"} {
			r = e.exec(command)
			e.wantPending(r, want...)
			if len(r.Refused) != 0 || len(r.Notes) != 0 {
				e.Errorf("told as new: %v, notes %q", r.Refused, r.Notes)
			}
		}
		q := e.request("true")
		q.ReadOnly = true
		e.wantPending(e.do(q), want...)

		stored := []string{"abs", "docs/a.md", "large", "new\nline", "secret.sh", "x/.git/config"}
		for _, end := range []func(){
			func() { e.stop() },
			func() { e.Runtime.Started()[len(e.Runtime.Started())-1].Stop(e.ctx) }, // like a crash or kill -9
			func() { e.reopen() },
		} {
			end()
			e.wantStored(stored...)
			q.Command = "ls -d x/.git/config" // the first command need not be one that writes
			e.wantPending(e.do(q), stored...)
			r = e.sh(`cat secret.sh docs/a.md x/.git/config $'new\nline'; readlink abs; wc -c < large; test -x secret.sh && echo executable`)
			if want := "key\nedited\nconfig\nn/etc/passwd\n5000\nexecutable\n"; r.Stdout.Text != want {
				e.Errorf("inside: %q, want %q", r.Stdout.Text, want)
			}
			e.wantPending(r, want...)
			if len(r.Commits) != 0 {
				e.Errorf("committed %q", paths(r.Commits))
			}
		}
		// A file that may now be committed is committed, based on its original version.
		e.Store.RefusePath = nil
		r = e.sh("true")
		if got := paths(r.Commits); !slices.Equal(got, []space.Path{"docs/a.md", "secret.sh"}) || len(r.Conflicts) != 0 {
			e.Errorf("committed %q, conflicts %v", got, r.Conflicts)
		}
		e.wantFile("secret.sh", &Entry{Mode: space.Executable, Content: "key\n"})
		e.wantPending(r, "abs", "large", "new\nline", "x/.git")
		e.wantStored("abs", "large", "new\nline", "x/.git/config")
	}},
	{name: "what may be committed by the time of a restart is", pending: true, run: func(e *exercise) {
		e.refuse("docs/a.md", "note")
		e.sh("echo edited > docs/a.md; echo note > note")
		e.stop()
		e.Store.RefusePath = nil
		r := e.sh("true")
		if len(r.Commits) != 1 || len(r.Pending)+len(r.Conflicts) != 0 {
			e.Errorf("%+v", r)
		}
		e.wantFile("docs/a.md", &Entry{Content: "edited\n"})
		e.wantStored()
	}},
	{name: "files that were fixed, deleted or restored inside are no longer pending", real: true, pending: true, options: smallFiles, run: func(e *exercise) {
		e.refuse("docs/a.md", "docs/b.md", "gone", "committed", "dir/one", "dir/two", "was a file")
		make := `echo x > docs/a.md; echo x > docs/b.md; echo x > gone; echo x > committed; mkdir -p dir/x/.git; echo x > dir/one; echo x > dir/two
			echo x > dir/x/.git/config; mkdir -p y/.git; echo x > y/.git/config; head -c 5000 /dev/zero > 'was a file'; head -c 5000 /dev/zero > shrinks; head -c 5000 /dev/zero > moves; head -c 5000 /dev/zero > readme.md`
		mend := `git show >/dev/null 2>&1; echo a > docs/a.md; rm docs/b.md gone y/.git/config; rm -r dir; rm 'was a file'; mkdir 'was a file'; echo 1 > 'was a file/1'
			echo small > shrinks; mv moves moved; echo hello > readme.md; echo x > committed`
		for _, restart := range []bool{false, true} {
			e.sh(make)
			if restart {
				e.stop()
			}
			e.Store.RefusePath = func(p string) error {
				if p == "committed" {
					return fault.New(fault.Invalid, "It holds a secret.")
				}
				return nil
			}
			r := e.sh(mend)
			e.wantPending(r, "committed", "moved")
			e.wantStored("committed", "moved")
			e.Store.RefusePath = nil
			r = e.sh("rm moved")
			e.wantPending(r)
			e.wantStored()
			e.wantFile("readme.md", &Entry{Content: "hello\n"})
			e.wantFile("docs/b.md", nil)
			e.sh("rm -r y 'was a file' shrinks committed; echo b > docs/b.md")
			e.refuse("docs/a.md", "docs/b.md", "gone", "committed", "dir/one", "dir/two", "was a file")
		}
	}},
	{name: "what is held never takes the place of something newer", pending: true, options: smallFiles, run: func(e *exercise) {
		e.refuse("readme.md", "docs/a.md", "new.md", "deep/x/y/z.t", "bin/more", "same", "readme.conflict")
		e.sh(`echo mine > readme.md; echo mine > docs/a.md; echo mine > new.md; head -c 2000 /dev/zero > deep/x/y/z.t; echo mine > bin/more; echo same > same; echo mine > fresh`)
		e.stop()
		c := e.Store.Put(e.space, map[space.Path]*Entry{
			"readme.md": {Content: "theirs\n"}, "docs/a.md": nil, "new.md/inner": {Content: "theirs\n"},
			"deep/x/y/z.t": {Content: "theirs\n"}, "bin/tool": nil, "bin": {Content: "theirs\n"}, "same": {Content: "same\n"},
		})
		mark := space.ConflictMark + c.ID.Short()
		want := []string{"bin" + mark + "/more", "deep/x/y/z" + mark + ".t", "docs/a" + mark + ".md", "new" + mark + ".md", "readme" + mark + ".md"}
		r := e.exec("cat readme.md new.md/inner deep/x/y/z.t bin; cat readme" + mark + ".md docs/a" + mark + ".md new" + mark + ".md bin" + mark + "/more; wc -c < deep/x/y/z" + mark + ".t")
		if want := strings.Repeat("theirs\n", 4) + strings.Repeat("mine\n", 4) + "2000\n"; r.Stdout.Text != want {
			e.Errorf("inside: %q, want %q; %s", r.Stdout.Text, want, r.Stderr.Text)
		}
		e.wantNote(r, "readme"+mark+".md")
		// The pending files have other names now, so a file stays pending only because of its own
		// content.
		e.wantPending(r, "deep/x/y/z"+mark+".t")
		e.wantStored("deep/x/y/z" + mark + ".t")
		if got := paths(r.Commits); len(got) != 4 || len(r.Conflicts) != 0 {
			e.Errorf("committed %q, want all but one of %q; conflicts %v", got, want, r.Conflicts)
		}
		e.wantFile("readme.md", &Entry{Content: "theirs\n"})
		e.wantFile("docs/a.md", nil)
	}},
	{name: "a newer version does not take the place of what a live sandbox could not commit", real: true, pending: true, options: smallFiles, run: func(e *exercise) {
		e.refuse("readme.md")
		e.sh("head -c 2000 /dev/zero > docs/a.md; echo mine > readme.md; rm -r deep; ln -s /nowhere deep; head -c 2000 /dev/zero > dir")
		e.Store.Put(e.space, map[space.Path]*Entry{
			"docs/a.md": {Content: "theirs\n"}, "readme.md": {Content: "theirs\n"}, "deep/new": {Content: "theirs\n"},
			"dir/new": {Content: "theirs\n"}, "docs/b.md": {Content: "theirs\n"},
		})
		r := e.sh("wc -c < docs/a.md; wc -c < dir; cat readme.md docs/b.md; readlink deep")
		if want := "2000\n2000\nmine\ntheirs\n/nowhere\n"; r.Stdout.Text != want {
			e.Errorf("inside: %q, want %q", r.Stdout.Text, want)
		}
		e.wantPending(r, "deep", "dir", "docs/a.md", "readme.md")
		// If a pending file is removed, the newer version appears. If a pending file can be
		// committed after all, both versions are kept.
		e.sh("rm docs/a.md deep dir")
		e.Store.RefusePath = nil
		r = e.sh("true")
		e.wantPending(r)
		r = e.sh("cat docs/a.md deep/new dir/new readme.md readme.md.conflict")
		if want := strings.Repeat("theirs\n", 4) + "mine\n"; r.Stdout.Text != want {
			e.Errorf("in the end: %q, want %q", r.Stdout.Text, want)
		}
	}},
	{name: "what a stop could not commit at all is held", pending: true, run: func(e *exercise) {
		e.sh("true")
		e.Store.FailCommit = func(space.ChangeSet) error {
			return fault.New(fault.TooLarge, "The space is full.")
		}
		r := e.exec("echo one > one; echo edited > docs/a.md; rm docs/b.md")
		if r.NotSaved == nil {
			e.Error("it was saved")
		}
		e.wantPending(r, "docs/a.md", "one")
		e.stop()
		e.Store.FailCommit = nil
		r = e.sh("cat one docs/a.md")
		if r.Stdout.Text != "one\nedited\n" || len(r.Commits) != 1 {
			e.Errorf("%+v", r)
		}
		e.wantPending(r)
		e.wantStored()
	}},
	{name: "a person drops what is held", pending: true, options: smallFiles, run: func(e *exercise) {
		for _, live := range []bool{true, false} {
			e.refuse("readme.md", "secret", "keep")
			e.sh(`echo mine > readme.md; echo s > secret; mkdir -p x/.git/objects; echo 1 > x/.git/objects/1; echo 2 > x/.git/2; printf x > $'bad\nname'; head -c 2000 /dev/zero > docs/a.md; echo k > keep`)
			if !live {
				e.stop()
			}
			for path, want := range map[string]int{"readme.md": 1, "secret": 1, "x/.git": 2, "bad\nname": 1, "docs/a.md": 1} {
				if n, err := e.Pool.DropPending(e.ctx, e.user, e.space, path); n != want || err != nil {
					e.Errorf("%s: %d dropped, %v", path, n, err)
				}
			}
			if _, err := e.Pool.DropPending(e.ctx, e.user, e.space, "secret"); fault.CodeOf(err) != fault.NotFound {
				e.Errorf("again: %v", err)
			}
			e.wantStored("keep")
			r := e.sh("cat readme.md docs/a.md; find . -path ./.git -prune -o -type f -print | sort")
			if want := "hello\na\n./bin/tool\n./deep/x/y/z.t\n./docs/a.md\n./docs/b.md\n./keep\n./readme.md\n"; r.Stdout.Text != want {
				e.Errorf("inside: %q, want %q", r.Stdout.Text, want)
			}
			e.wantPending(r, "keep")
			if len(r.Commits) != 0 {
				e.Errorf("committed %q", paths(r.Commits))
			}
		}
	}},
	{name: "files that cannot be kept are named, and reported when they are gone", pending: true, options: smallFiles, run: func(e *exercise) {
		r := e.sh("mkfifo pipe; head -c 200000 /dev/zero > huge; for i in 1 2 3; do head -c 90000 /dev/zero > big$i; done; true")
		e.wantPending(r, "big1", "big2", "big3", "huge", "pipe")
		for path, want := range map[string]string{
			"big3": `It will be lost when the sandbox stops: it has 87.9 kB, and 175.8 kB of the 195.4 kB that may be held for you are taken. It was not saved: it has 87.9 kB, and a file may have 1000 bytes.`,
			"huge": `It will be lost when the sandbox stops. It was not saved: it has 195.4 kB, and a file may have 1000 bytes.`, "pipe": `It will be lost when the sandbox stops. It was not saved: `,
		} {
			if i := slices.IndexFunc(r.Pending, func(h space.Rejection) bool { return h.Path == path }); i < 0 || !strings.HasPrefix(r.Pending[i].Why, want) {
				e.Errorf("%s: %+v, want %q", path, r.Pending, want)
			}
		}
		for _, h := range r.Pending {
			if h.Lost != strings.HasPrefix(h.Why, "It will be lost") {
				e.Errorf("%s is marked as lost: %v, and told so: %s", h.Path, h.Lost, h.Why)
			}
		}
		e.wantStored("big1", "big2", "huge", "pipe")
		// Once big1 is removed, there is room to hold big3.
		r = e.sh("rm big1")
		e.wantStored("big2", "big3", "huge", "pipe")
		e.wantPending(r, "big2", "big3", "huge", "pipe")
		e.stop()
		r = e.sh("ls")
		e.wantPending(r, "big2", "big3")
		e.wantNote(r, `"huge" could not be committed, and was lost with its sandbox: it has 195.4 kB, and a file may have 1000 bytes.`)
		e.wantNote(r, `"pipe" could not be committed, and was lost with its sandbox`)
		if r = e.sh("ls"); len(r.Notes) != 0 {
			e.Errorf("told again: %q", r.Notes)
		}
	}},
	{name: "pending files belong to one user", pending: true, run: func(e *exercise) {
		e.refuse("secret")
		e.sh("echo mine > secret")
		e.stop()
		other := *e
		other.user = "u_two"
		if r := other.exec("cat secret"); r.ExitCode == 0 || len(r.Pending) != 0 {
			e.Errorf("another user: %+v", r)
		}
		apart := *e
		apart.space = e.Store.Space(Tree{"f": {}})
		if r := apart.exec("cat secret"); r.ExitCode == 0 || len(r.Pending) != 0 {
			e.Errorf("another space: %+v", r)
		}
		if r := e.sh("cat secret"); r.Stdout.Text != "mine\n" {
			e.Errorf("the user: %q", r.Stdout.Text)
		}
	}},
	{name: "what a running command writes is held when its sandbox stops", pending: true, run: func(e *exercise) {
		e.refuse("secret")
		done := e.started(e.request("trap 'echo late > secret; exit 0' TERM; echo started; while :; do sleep 0.02; done"))
		e.stop()
		e.wait(done)
		e.wantStored("secret")
		if r := e.sh("cat secret"); r.Stdout.Text != "late\n" {
			e.Errorf("%q", r.Stdout.Text)
		}
	}},
	{name: "a sandbox that only looked commits nothing when it stops", pending: true, run: func(e *exercise) {
		e.refuse("secret")
		e.sh("echo s > secret")
		e.stop()
		e.Store.RefusePath = nil
		q := e.request("cat secret")
		q.ReadOnly = true
		if r := e.do(q); r.Stdout.Text != "s\n" {
			e.Errorf("%q", r.Stdout.Text)
		}
		e.stop()
		e.wantFile("secret", nil)
		e.wantStored("secret")
		r := e.sh("true")
		if len(r.Commits) != 1 || r.Commits[0].Author != q.Author {
			e.Errorf("%+v", r.Commits)
		}
		e.wantPending(r)
	}},
	{name: "a sandbox that is replaced for many changes keeps what is held", pending: true, options: func(o *sandbox.Options) {
		o.MaxApplyFiles = 2
	}, run: func(e *exercise) {
		e.refuse("docs/a.md")
		e.sh("echo mine > docs/a.md")
		c := e.Store.Put(e.space, map[space.Path]*Entry{"1": {}, "2": {}, "docs/a.md": {Content: "theirs\n"}})
		mark := space.ConflictMark + c.ID.Short()
		r := e.sh("cat docs/a.md docs/a" + mark + ".md")
		if r.Stdout.Text != "theirs\nmine\n" || !r.Restarted {
			e.Errorf("%+v", r)
		}
		e.wantNote(r, "docs/a"+mark+".md")
	}},
	{name: "without a place to keep it nothing is said to be held", run: func(e *exercise) {
		e.refuse("secret")
		r := e.sh("echo s > secret")
		if len(r.Pending) != 0 || len(r.Refused) != 1 {
			e.Errorf("%+v", r)
		}
		if _, err := e.Pool.DropPending(e.ctx, e.user, e.space, "secret"); fault.CodeOf(err) != fault.NotFound {
			e.Error(err)
		}
	}},
	{name: "a place that cannot be written or read stops nobody", pending: true, options: func(o *sandbox.Options) {
		o.Pending = brokenPending{}
	}, run: func(e *exercise) {
		e.refuse("secret")
		r := e.sh("echo s > secret; echo o > open")
		e.wantNote(r, "cannot read them now")
		e.wantPending(r, "secret")
		if len(r.Pending) == 1 && r.Pending[0].Why != "It will be lost when the sandbox stops: the server could not write it to its disk. It holds a secret." {
			e.Errorf("%q", r.Pending[0].Why)
		}
		e.wantFile("open", &Entry{Content: "o\n"})
	}},
}

// brokenPending is a sandbox.Pending whose disk fails.
type brokenPending struct{ sandbox.Pending }

var errBroken = errors.New("input/output error")

// refuse makes the committer refuse some paths.
func (e *exercise) refuse(paths ...string) {
	e.Store.RefusePath = func(p string) error {
		if slices.Contains(paths, p) {
			return fault.New(fault.Forbidden, "It holds a secret.")
		}
		return nil
	}
}

// stop shuts the sandbox down, which commits its changes.
func (e *exercise) stop() {
	e.Helper()
	if err := e.Pool.StopSpace(e.ctx, e.space); err != nil {
		e.Fatal(err)
	}
}

// reopen closes the pool and creates another over the same stores.
func (e *exercise) reopen() {
	e.Helper()
	if err := e.Pool.Close(e.ctx); err != nil {
		e.Fatal(err)
	}
	p, err := sandbox.New(e.options)
	if err != nil {
		e.Fatal(err)
	}
	e.Pool = p
	e.Cleanup(func() {
		if err := p.Close(e.Context()); err != nil && e.Context().Err() == nil {
			e.Error(err)
		}
	})
}

func (e *exercise) wantPending(r sandbox.Result, want ...string) {
	e.Helper()
	var got []string
	for _, h := range r.Pending {
		got = append(got, h.Path)
		if h.Why == "" || h.Err == nil {
			e.Errorf("%q is held without a reason", h.Path)
		}
	}
	if !slices.Equal(got, want) {
		e.Errorf("the answer names %q, want %q", got, want)
	}
}

func (e *exercise) wantStored(want ...string) {
	e.Helper()
	items, err := e.pending.List(e.ctx, e.user, e.space)
	if err != nil {
		e.Fatal(err)
	}
	var got []string
	for _, i := range items {
		got = append(got, i.Path)
	}
	if !slices.Equal(got, want) {
		e.Errorf("held are %q, want %q", got, want)
	}
}

func (brokenPending) Load(context.Context, space.UserID, space.SpaceID) ([]pending.File, error) {
	return nil, errBroken
}

func (brokenPending) Save(context.Context, space.UserID, space.SpaceID, []pending.File, []string) ([]pending.NotStored, error) {
	return nil, errBroken
}
