package shelltest_test

import (
	"testing"

	"satchel/internal/space"
	"satchel/sandbox"
)

// TestGitReads: the space's history is there for every way of looking at it,
// with what is not committed yet.
func TestGitReads(t *testing.T) {
	t.Parallel()
	s := newShell(t, map[string]string{"readme.md": "hello\n", "docs/a.md": "one\ntwo\n"}, nil)
	q := s.request("echo three >> docs/a.md; rm readme.md")
	q.Comment = "Count further"
	if r := s.ask(t, q); len(r.Commits) != 1 {
		t.Fatalf("%+v", r)
	}
	for _, e := range []expectation{
		{name: "log", command: "git log --format='%an|%s'", stdout: "Ada\\|Count further\nAda\\|Start\n"},
		{name: "log of a file", command: "git log --oneline --follow docs/a.md | wc -l; git log --oneline -- readme.md | wc -l", stdout: "2\n2\n"},
		{name: "trailers", command: "git log -1 --format=%b", stdout: ".*bash.*test.*"},
		{name: "show", command: "git show --stat --format=%s; git show HEAD~:readme.md; git show HEAD:docs/a.md", stdout: "Count further\n.*2 files changed.*hello\none\ntwo\nthree\n"},
		{name: "blame", command: "git blame -s docs/a.md | cut -d' ' -f2-", stdout: ".*one\n.*two\n.*three\n"},
		{name: "grep", command: "git grep -n two; git grep -c one HEAD~", stdout: "docs/a.md:2:two\nHEAD~:docs/a.md:1\n"},
		{name: "clean status", command: "git status --porcelain; git status | head -n2", stdout: "On branch main\n.*"},
		{name: "diff between commits", command: "git diff HEAD~ --stat -- docs; git diff --name-status HEAD~ HEAD", stdout: ".*1 insertion.*M\tdocs/a.md\nD\treadme.md\n"},
		{name: "uncommitted changes", command: "echo x > new.md; echo y >> docs/a.md; git status --porcelain; git diff --stat | tail -n1; rm new.md; sed -i '$d' docs/a.md; git status --porcelain",
			stdout: " M docs/a.md\n\\?\\? new.md\n 1 file changed, 1 insertion.*\n"},
		{name: "branches, tags, refs", command: "git branch --show-current; git rev-parse --abbrev-ref HEAD; git tag | wc -l; git rev-parse --is-bare-repository --show-toplevel", stdout: "main\nmain\n0\nfalse\n/space\n"},
		{name: "older versions of a file", command: "git show HEAD~:readme.md > back.md; cat back.md; rm back.md; git cat-file -t HEAD; git ls-tree --name-only HEAD; git ls-files", stdout: "hello\ncommit\ndocs\ndocs/a.md\n"},
		{name: "archive and shortlog", command: "git archive HEAD | tar -t; git shortlog -sn HEAD | cut -f2; git rev-list --count HEAD", stdout: "docs/\ndocs/a.md\nAda\n2\n"},
		{name: "a copy to work in", command: "git clone -q /space /tmp/c && cd /tmp/c && echo z > z && git add z && git commit -qm z && git log --oneline | wc -l; rm -rf /tmp/c", stdout: "3\n", stderr: "(?:warning.*)?"},
	} {
		t.Run(e.name, func(t *testing.T) { e.check(t, s.run(t, e.command)) })
		r := s.ask(t, readOnly(s.request(e.command)))
		switch e.name {
		case "uncommitted changes", "older versions of a file": // they write
		default:
			t.Run(e.name+", read-only", func(t *testing.T) { e.check(t, r) })
		}
	}
}

func readOnly(q sandbox.Request) sandbox.Request {
	q.ReadOnly, q.Tool = true, "bash_readonly"
	return q
}

// TestGitCannotWrite: only the server makes commits. The tool recognizes git's error by its
// text, which names .git and that it cannot be written, and then says what to do instead.
func TestGitCannotWrite(t *testing.T) {
	t.Parallel()
	s := newShell(t, map[string]string{"readme.md": "hello\n"}, nil)
	head := s.print(t, "git rev-parse HEAD")
	for _, command := range []string{
		"git add readme.md", "git commit -am x", "git checkout -b x", "git checkout -- readme.md", "git restore readme.md", "git reset --hard",
		"git tag v1", "git branch x", "git config user.name x", "git update-ref refs/heads/main HEAD", "git rm readme.md", "git mv readme.md b.md", "git merge --no-ff -m x HEAD",
		"git gc", "git remote add o https://example.org/x", "git worktree add /tmp/w", "echo x > .git/HEAD", "rm -rf .git/refs", "mv .git x",
	} {
		t.Run(command, func(t *testing.T) {
			r := s.run(t, "echo change >> readme.md; "+command+"; code=$?; git show HEAD:readme.md > readme.md; exit $code")
			e := expectation{stdout: ".*", stderr: `.*(?:\.git|refs/|worktree).*(?:Permission denied|Read-only file system|Device or resource busy|cannot lock ref|could not lock).*`, code: r.ExitCode}
			e.check(t, r)
			if r.ExitCode == 0 || len(r.Refused) > 0 {
				t.Errorf("it ended with %d, refused %v", r.ExitCode, r.Refused)
			}
		})
	}
	// git stash fails without a word, and git notes without naming the directory.
	for _, command := range []string{"git stash", "git notes add -m x"} {
		if r := s.run(t, "echo change >> readme.md; "+command+"; code=$?; git show HEAD:readme.md > readme.md; exit $code"); r.ExitCode == 0 {
			t.Errorf("%s succeeded", command)
		}
	}
	if now := s.print(t, "git rev-parse HEAD; git status --porcelain; git fsck 2>&1"); now != head {
		t.Errorf("head was %q and is %q", head, now)
	}
	files, err := s.store.Files(t.Context(), s.space, headOf(t, s), "")
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

func headOf(t *testing.T, s *shell) space.CommitID {
	t.Helper()
	head, err := s.store.Head(t.Context(), s.space)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// TestReadOnly: a read-only caller has a complete shell with its own home and temporary
// files, but cannot write to the space.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	s := newShell(t, map[string]string{"readme.md": "hello\n"}, nil)
	s.print(t, "echo theirs > /tmp/theirs; echo theirs > ~/theirs")
	for _, e := range []expectation{
		{name: "who", command: "whoami; id -u; echo $USER $LOGNAME $HOME ~; pwd", stdout: "reader\n1001\nreader reader /tmp/home /tmp/home\n/space\n"},
		{name: "reading", command: "cat readme.md; grep -c hello readme.md; wc -l < readme.md; rg -c hello", stdout: "hello\n1\n1\nreadme.md:1\n"},
		{name: "own files", command: "ls -A /tmp ~; echo mine > ~/f; echo mine > /tmp/f; cat ~/f /tmp/f; sort <<< b", stdout: "/tmp:\nhome\n\n/tmp/home:\nmine\nmine\nb\n"},
		{name: "own files again", command: "cat ~/f /tmp/f; rm ~/f /tmp/f", stdout: "mine\nmine\n"},
		{name: "work on a copy", command: "cp readme.md ~ && sed -i s/hello/bye/ ~/readme.md && diff readme.md ~/readme.md", stdout: "1c1\n< hello\n---\n> bye\n", code: 1},
		{name: "a new file", command: "touch x", stderr: "touch: .*'x': (?:Permission denied|Read-only file system)\n", code: 1},
		{name: "a redirection", command: "echo x > readme.md", stderr: "bash: line 1: readme.md: Read-only file system\n", code: 1},
		{name: "an edit in place", command: "sed -i s/h/H/ readme.md", stderr: "sed: .*(?:Permission denied|Read-only file system)\n", code: 4},
		{name: "a removal", command: "rm -f readme.md; cat readme.md", stdout: "hello\n", stderr: "rm: .*(?:Permission denied|Read-only file system)\n"},
		{name: "a mode", command: "chmod 600 readme.md", stderr: "chmod: .*(?:Operation not permitted|Read-only file system)\n", code: 1},
		{name: "commands of others", command: "pgrep -u satchel sleep > /dev/null || echo none; kill -9 -1; kill -9 1; echo still here", stdout: "none\nstill here\n", stderr: ".*kill: \\(1\\) - Operation not permitted\n"},
	} {
		t.Run(e.name, func(t *testing.T) { e.check(t, s.ask(t, readOnly(s.request(e.command)))) })
	}
	if got := s.print(t, "cat /tmp/theirs ~/theirs; git status --porcelain; ls -A"); got != "theirs\ntheirs\n.git\nreadme.md\n" {
		t.Errorf("afterwards the other shell has %q", got)
	}
}
