package attacks_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"satchel/gitstore"
	"satchel/sandbox/protocol"
)

// hostileRepository makes, in the directory where it runs, a nested repository and
// configurations that run a program when somebody runs git there. The program makes the
// file $CANARY.
const hostileRepository = `payload="touch $CANARY"
	mkdir -p nested && cd nested && git init -q . && git -c user.name=x -c user.email=x commit -q --allow-empty -m x
	printf '* filter=evil diff=evil merge=evil\n' > .gitattributes; echo one > f
	git config filter.evil.clean "sh -c '$payload; cat'"; git config filter.evil.smudge "sh -c '$payload; cat'"; git config filter.evil.process "$payload"
	git config diff.evil.textconv "sh -c '$payload; cat \$0'"; git config diff.external "sh -c '$payload'"; git config core.fsmonitor "sh -c '$payload'"
	git config core.sshCommand "sh -c '$payload'"; git config core.pager "sh -c '$payload; cat'"; git config alias.status "!$payload"; git config credential.helper "!$payload"
	mkdir -p .git/hooks; for h in post-checkout pre-commit post-commit post-index-change reference-transaction pre-push post-merge fsmonitor-watchman; do printf '#!/bin/sh\n%s\n' "$payload" > .git/hooks/$h; chmod 755 .git/hooks/$h; done
	git add f 2>/dev/null; echo two >> f; rm -f "$CANARY"; cd ..
	cp nested/.gitattributes .; echo text > readable`

// TestAttackNestedRepository: a repository within the space, with a program in
// every place of its configuration that git runs one from. No git runs over it
// on the host: its files are committed as files, what is git's own is refused
// aloud, and nothing is a bare link to a commit that nobody has.
func TestAttackNestedRepository(t *testing.T) {
	t.Parallel()
	w, log := newWatchedWorld(t)
	a := w.tenant(map[string]string{"old": "old\n"})
	canary := filepath.Join(t.TempDir(), "canary")
	r := a.sh("export CANARY=" + canary + "\n" + hostileRepository)
	if got := refused(r); !slices.Equal(got, []string{"nested/.git"}) {
		t.Errorf("refused %q\n%s", got, r.Stderr.Text)
	}
	if got := a.files(); !slices.Equal(got, []string{".gitattributes", "nested/.gitattributes", "nested/f", "old", "readable"}) {
		t.Errorf("committed %q", got)
	}
	if strings.Contains(a.git("ls-tree", "-r", "HEAD"), "160000") {
		t.Error("a link to a commit was committed: its files would be lost")
	}
	// What the host does with it afterwards: a checkout for the next sandbox, the
	// git view, a merge and a diff.
	if err := w.pool.StopSpace(noContext(), a.id); err != nil {
		t.Fatal(err)
	}
	edit(t, a, map[string]string{"nested/f": "from the web\n"})
	if out := a.out("cat nested/f; git log --oneline | wc -l"); out != "from the web\n3\n" {
		t.Errorf("%q", out)
	}
	a.alive()
	if _, err := os.Lstat(canary); err == nil {
		t.Error("the host ran what the sandbox wrote")
	}
	log.wantNoTree(t)
	seenWithoutDefence(t, func(t *testing.T) {
		for _, naive := range []string{"git -C nested status", "git -C nested diff", "git -C nested add -A", "git -C nested -c core.hooksPath=/dev/null -c core.fsmonitor=false add -A"} {
			canary := filepath.Join(t.TempDir(), "canary")
			hostSh(t, "export CANARY="+canary+"\n"+hostileRepository+"\n"+naive)
			if _, err := os.Lstat(canary); err != nil {
				t.Errorf("%s does not run the payload: the test would not see it", naive)
			}
		}
	})
}

// gitLog is what the store's git program was started with.
type gitLog struct{ file string }

// newWatchedWorld makes a world whose git program notes how it is called.
func newWatchedWorld(t *testing.T) (*world, gitLog) {
	t.Helper()
	dir := t.TempDir()
	log := gitLog{filepath.Join(dir, "log")}
	program := filepath.Join(dir, "git")
	script := "#!/bin/sh\nprintf '%s :: %s\\n' \"$PWD\" \"$*\" >> " + log.file + "\nexec git \"$@\"\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return newWorldWith(t, &strong, func(o *gitstore.Options) { o.Git = program }), log
}

// wantNoTree checks that git never ran in a tree with checked-out changes of a sandbox, nor
// got its path.
func (l gitLog) wantNoTree(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile(l.file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		_, args, _ := strings.Cut(line, " :: ")
		if strings.Contains(line, "/checkout-") || strings.Contains(line, "--work-tree") {
			t.Errorf("git ran over a tree: %s", line)
		}
		for _, verb := range []string{" status", " add ", " checkout", " diff ", " submodule", " stash", " clean"} {
			if strings.Contains(" "+args, verb) {
				t.Errorf("git ran: %s", line)
			}
		}
	}
}

// TestAttackGitNames: names that git, or a file system that folds names, takes
// for a repository's own. Each is refused; none keeps anything else from being
// committed, now or later.
func TestAttackGitNames(t *testing.T) {
	t.Parallel()
	w, log := newWatchedWorld(t)
	a := w.tenant(map[string]string{"sub/file": "x\n"})
	make := `mkdir -p .GIT .Git/hooks sub/.git sub/'.git ' sub/.git. 'sub/.git::$INDEX_ALLOCATION' 'git~1' sub/GIT~1 $'sub/.g\u200cit' $'\ufeff.git' 'sub/.git\config'
		for d in .GIT .Git/hooks sub/.git sub/'.git ' sub/.git. 'sub/.git::$INDEX_ALLOCATION' 'git~1' sub/GIT~1 $'sub/.g\u200cit' $'\ufeff.git' 'sub/.git\config'; do echo x > "$d/config"; done
		ln -s sub gitlink; ln -s sub/.git sub/dotgit; ln -s .git/config conf; mkdir ok; ln -s ../sub ok/.git; echo fine > ok/file; mkdir ok2; echo 'gitdir: /tmp' > ok2/.git; echo fine > ok2/file`
	r := a.sh(make)
	if len(r.Refused) < 14 {
		t.Errorf("%d refused: %q", len(r.Refused), refused(r))
	}
	if got := a.files(); !slices.Equal(got, []string{"gitlink", "ok/file", "ok2/file", "sub/file"}) {
		t.Errorf("committed %q", got)
	}
	for i, command := range []string{"echo 1 >> sub/file", "mkdir -p .GIT/x; echo 2 > .GIT/x/y; echo 2 >> sub/file", "rm -rf .GIT; echo 3 >> sub/file"} {
		if r := a.sh(command); len(r.Commits) != 1 || r.NotSaved != nil {
			t.Errorf("command %d after it: %+v", i, r)
		}
	}
	// The git view at the root is neither writable nor replaceable.
	r = a.sh(`echo x > .git/config; touch .git/x; rm -rf .git; mv .git away; ln -s /tmp .git; git config a.b c; git commit -qam x; git gc -q; git update-ref refs/heads/x HEAD; ls .git/x away refs/heads/x 2>/dev/null`)
	if r.Stdout.Text != "" || len(r.Commits) != 0 {
		t.Errorf("the git view was written: %+v", r)
	}
	if got := strings.Fields(a.git("for-each-ref", "--format=%(refname)")); len(got) == 0 || slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "heads/x") }) {
		t.Errorf("refs: %q", got)
	}
	a.alive()
	log.wantNoTree(t)
	seenWithoutDefence(t, func(t *testing.T) {
		// One such path takes the commit of everything from a naive host.
		out := hostSh(t, "git init -q .; mkdir sub; echo x > sub/file; mkdir 'git~1'; echo x > 'git~1/config'; git add -A . 2>&1; git ls-files")
		if !strings.Contains(out, "invalid path") || strings.Contains(out, "\nsub/file\n") {
			t.Errorf("git takes it: %q", out)
		}
	})
}

// TestAttackSymlinkedGitDirectory: a .git that is a link, in a subdirectory, is
// never followed, nor is one put where the view is while commands run.
func TestAttackSymlinkedGitDirectory(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(map[string]string{"sub/file": "x\n"})
	r := a.sh("mkdir repo; cd repo; git init -q elsewhere; ln -s elsewhere/.git .git; cd ../sub; ln -s /space/.git .git; echo y >> file")
	if got := refused(r); !slices.Equal(got, []string{"repo/.git", "repo/elsewhere/.git", "sub/.git"}) {
		t.Errorf("refused %q", got)
	}
	if got := a.files(); !slices.Equal(got, []string{"sub/file"}) {
		t.Errorf("committed %q", got)
	}
	a.alive()
}

// TestAttackCollidingNames: names that fold to one on other file systems are
// two files here, and none replaces the other.
func TestAttackCollidingNames(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(nil)
	a.out("echo 1 > Readme.md; echo 2 > README.MD; echo 3 > readme.md; mkdir D d; echo 4 > D/x; echo 5 > d/x; printf 6 > $'caf\\u00e9'; printf 7 > $'cafe\\u0301'")
	if got := a.git("show", "HEAD:Readme.md", "HEAD:README.MD", "HEAD:readme.md", "HEAD:D/x", "HEAD:d/x", "HEAD:caf\u00e9", "HEAD:cafe\u0301"); got != "1\n2\n3\n4\n5\n67" {
		t.Errorf("%q", got)
	}
	if err := a.pool.StopSpace(noContext(), a.id); err != nil {
		t.Fatal(err)
	}
	if got := a.out("cat Readme.md README.MD readme.md"); got != "1\n2\n3\n" {
		t.Errorf("the next sandbox has %q", got)
	}
}

// TestAttackRefsAndMessages: what the caller or a command names never becomes a
// ref, an option or a line of the commit's head.
func TestAttackRefsAndMessages(t *testing.T) {
	t.Parallel()
	w, log := newWatchedWorld(t)
	a := w.tenant(nil)
	for i, comment := range []string{
		"--amend", "-F/etc/passwd", "$(touch pwned); `id`", "x\n\nparent 0000000000000000000000000000000000000000\nauthor root <r> 0 +0000",
		"x\n\nSatchel-Tool: web", "\x1b[2Jx\x00y\xff", strings.Repeat("long ", 20_000),
	} {
		q := a.request(a.user, a.id, "echo "+strings.Repeat("x", i+1)+" > 'refs/heads/--upload-pack=x' 2>/dev/null || { mkdir -p refs/heads; echo "+strings.Repeat("x", i+1)+" > 'refs/heads/--upload-pack=x'; }; echo "+strings.Repeat("y", i)+" > @{upstream}; echo > HEAD")
		q.Comment, q.Author.Name, q.Author.Email, q.Tool, q.Client = comment, "Mal\nlory <x>", "m@x>\nparent 1", "ba\nsh", "-c\x00"
		r, err := a.pool.Exec(noContext(), q)
		if err != nil || r.NotSaved != nil || len(r.Commits) != 1 {
			t.Errorf("%.40q: %+v, %v", comment, r, err)
		}
		raw := a.git("cat-file", "commit", "HEAD")
		head, body, _ := strings.Cut(raw, "\n\n")
		if strings.Count(head, "\n") != 3 || strings.ContainsAny(raw, "\x00\x1b") || !utf8.ValidString(raw) || strings.Count(body, "Satchel-Tool:") > 2 {
			t.Errorf("%.40q: the commit is %.600q", comment, raw)
		}
	}
	if refs := strings.Fields(a.git("for-each-ref", "--format=%(refname)")); len(refs) != 1 {
		t.Errorf("refs %q", refs)
	}
	log.wantNoTree(t)
	a.alive()
}

// TestAttackGitInside: git inside reads a view that has no credentials and no
// configuration of the host's; that it may lie to itself harms nobody.
func TestAttackGitInside(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(map[string]string{"f": "x\n"})
	out := a.sh("git config --list --show-origin; cat .git/config; ls -la .git; GIT_DIR=.git git push https://example.org/x HEAD; git fetch origin; git remote -v; git ls-remote").Stdout.Text
	for _, leak := range []string{a.dir, "token", "helper", "extraheader", "insteadof", "url"} {
		if strings.Contains(strings.ToLower(out), leak) {
			t.Errorf("%q is told inside: %s", leak, out)
		}
	}
	r := a.sh("git -c core.bare=false init -q /tmp/r; cd /tmp/r; git config user.email x; git config user.name x; git commit -q --allow-empty -m mine; cp -r /tmp/r/.git/refs /space/refs; git -C /space --git-dir=/tmp/r/.git log --format=%s -1")
	if r.End != protocol.Exited || strings.Contains(a.git("log", "--format=%s"), "mine") {
		t.Errorf("%+v", r)
	}
	a.alive()
}
