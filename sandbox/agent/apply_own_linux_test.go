package agent

import (
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

func own(e protocol.ApplyEntry) protocol.ApplyEntry { e.Own = true; return e }

// An entry with Own is like a change of the user's command: the next collection reports it.
func TestApplyOwn(t *testing.T) {
	t.Parallel()
	link := func(path, target string) protocol.ApplyEntry {
		return protocol.ApplyEntry{Path: path, Content: []byte(target), Mode: space.Symlink}
	}
	long := strings.Repeat("d/", maxDepth) + "f"
	for _, c := range []struct {
		name     string
		before   string // commands
		entries  []protocol.ApplyEntry
		answer   string
		look     string // command
		sees     string
		reported string // by the next collection
	}{
		{"a new file", "", []protocol.ApplyEntry{put("n", "1")}, "n\n", "cat n; stat -c '%a %u' n", "1644 1000\n", "\"n\"=1\n"},
		{"a changed file", "", []protocol.ApplyEntry{put("a.txt", "new")}, "a.txt\n", "cat a.txt", "new", "\"a.txt\"=new\n"},
		{"over a change", "echo mine > a.txt", []protocol.ApplyEntry{put("a.txt", "new")}, "a.txt\n", "cat a.txt", "new", "\"a.txt\"=new\n"},
		{"an executable", "", []protocol.ApplyEntry{{Path: "x", Content: []byte("#!/bin/sh\necho hi"), Mode: space.Executable}}, "x\n", "./x", "hi\n", "\"x\" x=#!/bin/sh\necho hi\n"},
		{"paths that no space can have", "", []protocol.ApplyEntry{put("x/.git/config", "1"), put("new\nline", "2"), put("\xff", "3")}, "x/.git/config\nnew\nline\n\xff\n",
			"cat x/.git/config *line $'\\xff'", "123", "\"new\\nline\"=2\n\"x\" opaque dir\n\"x/.git\" dir\n\"x/.git/config\"=1\n\"\\xff\"=3\n"},
		{"a link that leads out", "", []protocol.ApplyEntry{link("l", "/etc/passwd")}, "l\n", "readlink l", "/etc/passwd\n", "\"l\" link=/etc/passwd\n"},
		{"a delete", "", []protocol.ApplyEntry{{Path: "a.txt", Delete: true}}, "a.txt\n", "ls a.txt 2>/dev/null; :", "", "\"a.txt\" deleted\n"},

		{"attack: paths that leave", "", []protocol.ApplyEntry{put("../x", "1"), put("/tmp/x", "1"), put("a/../../x", "1"), put("", "1"), put("./x", "1"), put("x//y", "1"), put("nul\x00", "1"), put(long, "1"), put(strings.Repeat("x", maxReportedPath+1), "1")},
			"../x problem\n/tmp/x problem\na/../../x problem\n problem\n./x problem\nx//y problem\nnul\x00 problem\n" + long + " problem\n" + strings.Repeat("x", maxReportedPath+1) + " problem\n", "ls /tmp", "home\n", ""},
		{"attack: the git view", "", []protocol.ApplyEntry{put(".git/config", "1"), put(".git", "1"), {Path: ".git", Delete: true}}, ".git/config problem\n.git problem\n.git problem\n", "test -d .git && echo there", "there\n", ""},
		{"attack: through a link that was put first", "", []protocol.ApplyEntry{link("up", "/tmp"), put("up/evil", "1"), {Path: "up/home", Delete: true}}, "up\nup/evil problem\nup/home\n", "ls /tmp", "home\n", "\"up\" link=/tmp\n"},
		{"attack: through a planted link", "rm -r dir; ln -s /run/satchel dir", []protocol.ApplyEntry{put("dir/one", "2")}, "dir/one problem\n", "ls dir/one 2>/dev/null; readlink dir", "/run/satchel\n", "\"dir\" link=/run/satchel\n"},
		{"attack: in place of a directory with files", "", []protocol.ApplyEntry{put("dir", "1")}, "dir dirty\n", "cat dir/one", "1", ""},
		{"attack: in place of a file", "", []protocol.ApplyEntry{put("a.txt/b", "1")}, "a.txt/b problem\n", "cat a.txt", "a", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startSandbox(t, sandboxOption{seed: testSeed})
			s.sh(c.before)
			for i := range c.entries {
				c.entries[i] = own(c.entries[i])
			}
			if got := s.apply(c.entries...); got != c.answer {
				t.Errorf("answer %q, want %q", got, c.answer)
			}
			if r := s.exec(protocol.ExecRequest{Command: c.look}); text(r.Stdout) != c.sees {
				t.Errorf("%s: %q %q, want %q", c.look, text(r.Stdout), text(r.Stderr), c.sees)
			}
			if got := brief(s.collect()); got != c.reported {
				t.Errorf("told:\n%swant:\n%s", got, c.reported)
			}
		})
	}
}

// A file that a running command has open for writing, or a directory in which it works, is
// not replaced: the result is Dirty until the command has ended.
func TestApplyUnderARunningCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		job     string // after it "go" is waited for
		then    string
		entries []protocol.ApplyEntry
		answer  string
		look    string
		sees    string
	}{
		{"a file that is open for reading", "exec 3<b.txt", "cat <&3 > seen", []protocol.ApplyEntry{put("b.txt", "new")}, "b.txt\n", "cat b.txt seen", "newb"},
		{"a file that is open for writing", "exec 3>>b.txt", "echo more >&3", []protocol.ApplyEntry{put("b.txt", "new"), put("a.txt", "new")}, "b.txt dirty\na.txt\n", "cat b.txt a.txt", "bmore\nnew"},
		{"a deleted file that is open for writing", "exec 3>>b.txt", "echo more >&3", []protocol.ApplyEntry{del("b.txt")}, "b.txt dirty\n", "cat b.txt", "bmore\n"},
		{"a working directory that empties", "cd dir/sub", "echo x > late; pwd >> late", []protocol.ApplyEntry{del("dir/sub/three"), del("dir/one"), del("dir/two")}, "dir/sub/three\ndir/one\ndir/two\n", "cat dir/sub/late", "x\n/space/dir/sub\n"},
		{"a working directory that becomes a file", "cd dir/sub", "echo x > late", []protocol.ApplyEntry{del("dir/sub/three"), put("dir/sub", "1")}, "dir/sub/three\ndir/sub dirty\n", "cat dir/sub/late", "x\n"},
		{"a working directory above what goes", "cd dir", "echo x > late", []protocol.ApplyEntry{del("dir/sub/three")}, "dir/sub/three\n", "cat dir/late; ls dir/sub 2>/dev/null; :", "x\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startSandbox(t, sandboxOption{seed: testSeed})
			ends := make(chan protocol.JobEnd, 1)
			s.OnJobEnd(func(e protocol.JobEnd) { ends <- e })
			// The host knows the file, so only its use matters.
			s.sh("printf b > b.txt")
			s.collect()
			s.exec(protocol.ExecRequest{Background: true, Command: c.job + "; : > /tmp/ready; until [ -e /tmp/go ]; do sleep 0.02; done; " + c.then})
			for s.exec(protocol.ExecRequest{Command: "test -e /tmp/ready"}).ExitCode != 0 {
			}
			if got := s.apply(c.entries...); got != c.answer {
				t.Errorf("answer %q, want %q", got, c.answer)
			}
			s.sh(": > /tmp/go")
			if e := <-ends; e.ExitCode != 0 {
				t.Errorf("the job: %+v", e)
			}
			if r := s.exec(protocol.ExecRequest{Command: c.look}); text(r.Stdout) != c.sees {
				t.Errorf("%s: %q %q, want %q", c.look, text(r.Stdout), text(r.Stderr), c.sees)
			}
		})
	}
}
