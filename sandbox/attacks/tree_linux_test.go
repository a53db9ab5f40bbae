package attacks_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// secretFile makes a file on the host that no command may ever get the content
// of.
func secretFile(t testing.TB) (path, secret string) {
	t.Helper()
	path, secret = filepath.Join(t.TempDir(), "secret"), "canary-41c7"+fmt.Sprint(time.Now().UnixNano())
	if err := os.WriteFile(path, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	return path, secret
}

// objects returns the contents of every object in a repository.
func (a *tenant) objects() string {
	a.Helper()
	return a.git("cat-file", "--batch-all-objects", "--batch")
}

// naiveWalk reads a tree like a walker that trusts it: it follows every link. It reports a
// pipe without a writer as hanging.
func naiveWalk(t testing.TB, dir string) (contents string, hung []string) {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if d.Type() == fs.ModeNamedPipe {
			hung = append(hung, filepath.Base(p))
		} else if out, err := exec.Command("cat", "--", p).Output(); err == nil {
			all.Write(out[:min(len(out), 1<<20)])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String(), hung
}

// TestAttackLinksOutOfTheTree: links to the host's files, through every place
// that has links of its own, are refused by name; what they lead to is in no
// object of the repository, and what is sound is committed.
func TestAttackLinksOutOfTheTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.tenant(map[string]string{"dir/kept": "kept\n"})
	path, secret := secretFile(t)
	up := strings.Repeat("../", 40)
	script := `ln -s ` + path + ` absolute; ln -s ` + up + path[1:] + ` upwards; mkdir d; ln -s ../../x d/parent
		ln -s /proc/self/root` + path + ` procroot; ln -s /proc/1/environ environ; ln -s /proc/self/cwd/x cwd; ln -s /dev/stdin stdin
		ln -s ` + filepath.Dir(path) + ` dirlink; ln -s d/../../etc/passwd sneaky; ln -s . here; ln -s here/here/here loop; ln -s self self; ln -s dir/kept sound`
	r := a.sh(script)
	want := []string{"absolute", "cwd", "d/parent", "dirlink", "environ", "procroot", "sneaky", "stdin", "upwards"}
	if got := refused(r); !slices.Equal(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
	if got := a.files(); !slices.Equal(got, []string{"dir/kept", "here", "loop", "self", "sound"}) {
		t.Errorf("committed %q", got)
	}
	// A directory that the host knows becomes a link, and files "under" it are
	// written: nothing is read through it.
	a.sh(`rm -r dir; ln -s ` + filepath.Dir(path) + ` dir; ls dir/ >/dev/null 2>&1; true`)
	if strings.Contains(a.objects(), secret) {
		t.Error("the secret is in the repository")
	}
	// The next sandbox starts from a checkout with the links that passed.
	if err := w.pool.StopSpace(noContext(), a.id); err != nil {
		t.Fatal(err)
	}
	if out := a.sh("cat sound 2>&1; readlink here self loop"); !strings.HasSuffix(out.Stdout.Text, ".\nself\nhere/here/here\n") {
		t.Errorf("%q", out.Stdout.Text)
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		dir := t.TempDir()
		hostSh(t, "cd "+dir+"; "+script+"; mkfifo waiting")
		if got, hung := naiveWalk(t, dir); !strings.Contains(got, secret) || !slices.Equal(hung, []string{"waiting"}) {
			t.Errorf("a walker that follows links does not find the secret, or does not hang: %q", hung)
		}
	})
}

// TestAttackSpecialFiles: FIFOs, sockets and devices neither hang the collection
// nor come to be on the host, and are named.
func TestAttackSpecialFiles(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(map[string]string{"was-a-file": "x\n"})
	r := a.sh(`mkfifo fifo; rm was-a-file; mkfifo was-a-file; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'
		for d in "c 1 1" "b 8 0" "c 0 0"; do mknod dev $d 2>/dev/null && echo harm; done; (exec 3<>fifo; touch ready; sleep 1000) & until [ -e ready ]; do :; done; echo ok > ok`)
	if harmed(r.Stdout.Text) {
		t.Error("a device was made")
	}
	if got := refused(r); !slices.Equal(got, []string{"fifo", "sock", "was-a-file"}) {
		t.Errorf("refused %q", got)
	}
	if got := a.files(); !slices.Contains(got, "ok") {
		t.Errorf("committed %q", got)
	}
	a.alive() // and the data directory is looked through
}

// oddNames are names that a file system takes and a repository or a terminal
// should not.
const oddNames = `printf ok > ok; printf x > $'bad\xff\xfe'; printf x > $'new\nline'; printf x > $'esc\x1b[2J'; printf x > $'bell\a'; mkdir $'d\xc3'; printf x > $'d\xc3/in'
	printf x > $'\xed\xa0\x80'; printf x > -rf; printf x > '$(touch pwned)'; printf x > '|sh'; printf x > 'a b'; printf x > $'rtl\u202etxt.exe'; ln -s ok $'link\nname'; printf x > 'C:\x'; printf x > "$(printf %0250d 1)"`

// TestAttackOddNames: names that are not UTF-8 or contain control characters are rejected
// one by one, reported in clean text, and do not prevent other commits.
func TestAttackOddNames(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(nil)
	r := a.sh(oddNames)
	want := []string{"bad\xff\xfe", "bell\a", "d\xc3/in", "esc\x1b[2J", "link\nname", "new\nline", "\xed\xa0\x80"}
	got := refused(r)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
	for _, f := range r.Refused {
		if strings.ContainsAny(f.Why, "\x1b\a\xff") {
			t.Errorf("the reason has the name's bytes: %q", f.Why)
		}
	}
	for _, p := range []string{"ok", "-rf", "$(touch pwned)", "|sh", "a b"} {
		if !slices.Contains(a.files(), p) {
			t.Errorf("%q is not committed", p)
		}
	}
	for _, p := range a.files() {
		if strings.ContainsAny(p, "\n\x1b\a\xff") || p == "pwned" {
			t.Errorf("committed: %q", p)
		}
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		out := hostSh(t, "git init -q .; "+oddNames+"; git add -A . && git -c user.name=x -c user.email=x commit -qm x && git ls-tree -r -z --name-only HEAD")
		if !strings.Contains(out, "new\nline") || !strings.Contains(out, "bad\xff\xfe") {
			t.Errorf("a repository takes none of the names: %q", out)
		}
	})
}

// TestAttackHardLinks: no two users' files, and no file of a checkout and of a
// repository, are one inode; linking inside and writing through the link changes
// nothing outside.
func TestAttackHardLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	same := map[string]string{"readme.md": "the same in both\n", "dir/file": "the same in both\n"}
	a, b := w.tenant(same), w.tenant(same)
	b.out("cat readme.md")
	a.out("ln readme.md dir/link && echo changed > dir/link && ln /library/x /space/y 2>/dev/null; ln /usr/bin/true mine 2>/dev/null; ln .git/HEAD head 2>/dev/null; true")
	if got := b.out("cat readme.md dir/file"); got != "the same in both\nthe same in both\n" {
		t.Errorf("another user's file: %q", got)
	}
	if got := a.files(); !slices.Equal(got, []string{"dir/file", "dir/link", "readme.md"}) {
		t.Errorf("committed %q", got)
	}
	shared := func(t *testing.T, dir string) (n int) {
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil // removed meanwhile
			}
			var st unix.Stat_t
			if unix.Lstat(p, &st) == nil && st.Nlink > 1 && !strings.Contains(p, "/objects/") {
				n++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := shared(t, w.dir); n != 0 {
		t.Errorf("%d files of the data directory have more than one name", n)
	}
	seenWithoutDefence(t, func(t *testing.T) {
		dir := t.TempDir()
		out := hostSh(t, "cd "+dir+"; mkdir a; echo mine > a/f; cp -rl a b; echo harm > b/f; cat a/f")
		if shared(t, dir) != 2 || !harmed(out) {
			t.Errorf("a seed of hard links is not seen: %q", out)
		}
	})
}

// TestAttackSparseAndHugeFiles: a file is as large as it says, whatever it
// takes: past the limit it is not made, past what may be committed it is not
// read, and neither fills the host.
func TestAttackSparseAndHugeFiles(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(nil)
	before := diskUse(t, a.dir)
	r := a.sh("truncate -s 100M sparse; truncate -s 11M over; truncate -s 10M allowed; truncate -s 1T huge; truncate -s 9223372036854775807 max; true; dd if=/dev/zero of=far bs=1 count=1 seek=8E; fallocate -l 1T fat; echo ok > ok; find huge max far fat -size +200M 2>/dev/null")
	if got := refused(r); !slices.Equal(got, []string{"over", "sparse"}) {
		t.Errorf("refused %q\n%s", got, r.Stderr.Text)
	}
	if got := a.files(); !slices.Contains(got, "ok") || !slices.Contains(got, "allowed") || slices.Contains(got, "sparse") {
		t.Errorf("committed %q", got)
	}
	if grown := diskUse(t, a.dir) - before; grown > 30<<20 {
		t.Errorf("the host's disk holds %d MB more", grown>>20)
	}
	for _, n := range []string{"huge", "max", "far", "fat"} {
		if strings.Contains(r.Stdout.Text, n) {
			t.Errorf("%s was made", n)
		}
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		a := newWorld(t, func(o *sandbox.Options) { o.Limits.FileSize = 0 }).tenant(nil)
		if r := a.sh("truncate -s 1T huge; find huge -size +200M"); !strings.Contains(r.Stdout.Text, "huge") {
			t.Errorf("without the limit there is none either: %+v", r)
		}
	})
}

// diskUse is what a directory takes of the host's disk, in bytes.
func diskUse(t testing.TB, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil && unix.Lstat(p, &st) == nil {
			n += st.Blocks * 512
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// deepPath makes a directory whose path has 80 kB, with a file at its end.
const deepPath = `python3 -c '
import os
name = "d" * 200
for i in range(400):
    os.mkdir(name); os.chdir(name)
open("bottom", "w").write("deep")'; echo ok > ok`

// TestAttackDeepPaths: what lies too deep to be committed is named, not left out
// in silence, and keeps nothing else from being committed.
func TestAttackDeepPaths(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(nil)
	r := a.sh(deepPath)
	if r.ExitCode != 0 || len(r.Refused) != 1 || r.Refused[0].Why == "" {
		t.Errorf("%d refused: %.300v; %s", len(r.Refused), r.Refused, r.Stderr.Text)
	}
	if got := a.files(); !slices.Equal(got, []string{"ok"}) {
		t.Errorf("committed %q", got)
	}
	r = a.sh("mv d* moved; mkdir -p $(printf 'e/%.0s' {1..33}); echo x > $(printf 'e/%.0s' {1..33})x; echo more > more")
	if got := a.files(); !slices.Equal(got, []string{"more", "ok"}) {
		t.Errorf("committed %q, refused %.300v", got, r.Refused)
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		out := hostSh(t, "git init -q .; "+deepPath+"; git add -A . 2>/dev/null && echo added; git ls-files | grep -c bottom")
		if !strings.HasPrefix(out, "added\n0") {
			t.Errorf("git does not leave the file out in silence: %.300q", out)
		}
	})
}

// swaps constantly changes what is at a name: a file, a link to the outside, a directory
// with a file of the same name, a link to a directory.
const swaps = `mkdir -p real; echo fine > real/x; touch started
	while :; do
		echo fine > name; rm -rf name; ln -s /etc/passwd name; rm -rf name; mkdir name; echo fine > name/x; rm -rf name; ln -s real name; rm -rf name
		rm -rf deep; mkdir -p deep/er; echo fine > deep/er/x; mv deep/er deep/away; ln -s /etc deep/er
	done`

// TestAttackSwapsWhileCollected: what is at a name changes between each check and the
// reading. Every committed file was a file with that content or a link within the space,
// never the target of a link.
func TestAttackSwapsWhileCollected(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(nil)
	q := a.request(a.user, a.id, swaps)
	q.Background = true
	job, err := a.pool.Exec(noContext(), q)
	if err != nil || job.End != protocol.Detached {
		t.Fatalf("%+v, %v", job, err)
	}
	a.out("until [ -e started ]; do :; done")
	for i := range 25 {
		if r := a.sh(fmt.Sprintf("echo %d > count; for i in {1..200}; do :; done", i)); r.NotSaved != nil {
			t.Fatalf("a collection failed: %v", r.NotSaved)
		}
	}
	if err := a.pool.KillJob(noContext(), sandbox.JobOwner{User: a.user, Space: a.id}, job.JobID, "KILL"); err != nil {
		t.Error(err)
	}
	objects := a.objects()
	for _, leak := range []string{"root:x:0", "satchel:x:", "nsswitch", "/etc/passwd", "[safe]"} {
		if strings.Contains(objects, leak) {
			t.Errorf("%q is in the repository", leak)
		}
	}
	if got := a.git("show", "HEAD:count"); got != "24\n" {
		t.Errorf("the last command wrote %q", got)
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		// A walker that looks, and then opens what it looked at by name.
		dir := t.TempDir()
		p := filepath.Join(dir, "name")
		path, secret := secretFile(t)
		if err := os.WriteFile(p, []byte("fine"), 0o644); err != nil {
			t.Fatal(err)
		}
		if fi, err := os.Lstat(p); err != nil || !fi.Mode().IsRegular() {
			t.Fatal(err)
		}
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, p); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(p); err != nil || string(b) != secret {
			t.Errorf("%q, %v", b, err)
		}
	})
}
