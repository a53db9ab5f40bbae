package agent

import (
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

func (s *sandbox) apply(entries ...protocol.ApplyEntry) string {
	s.t.Helper()
	rs, err := s.Apply(s.t.Context(), entries)
	must(s.t, err)
	var w strings.Builder
	for _, r := range rs {
		w.WriteString(r.Path)
		if r.Dirty {
			w.WriteString(" dirty")
		}
		if r.Problem != "" {
			w.WriteString(" problem")
			s.t.Logf("%s: %s", r.Path, r.Problem)
		}
		w.WriteString("\n")
	}
	return w.String()
}

func put(path, content string) protocol.ApplyEntry {
	return protocol.ApplyEntry{Path: path, Content: []byte(content)}
}
func del(path string) protocol.ApplyEntry             { return protocol.ApplyEntry{Path: path, Delete: true} }
func force(e protocol.ApplyEntry) protocol.ApplyEntry { e.Force = true; return e }

// Each case starts from the checkout, runs commands, applies, and then checks the space and
// the next collection.
func TestApply(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		before   string // commands
		ack      bool   // what they did is acknowledged
		entries  []protocol.ApplyEntry
		answer   string
		look     string // command
		sees     string
		reported string // by the next collection
	}{
		{"a new file", "", true, []protocol.ApplyEntry{put("n", "1")}, "n\n", "cat n; stat -c '%a %u' n", "1644 1000\n", ""},
		{"a changed file", "", true, []protocol.ApplyEntry{put("a.txt", "new")}, "a.txt\n", "cat a.txt", "new", ""},
		{"an executable", "", true, []protocol.ApplyEntry{{Path: "x", Content: []byte("#!/bin/sh\necho hi"), Mode: space.Executable}}, "x\n", "./x", "hi\n", ""},
		{"a link", "", true, []protocol.ApplyEntry{{Path: "l", Content: []byte("a.txt"), Mode: space.Symlink}}, "l\n", "readlink l; cat l", "a.txt\na", ""},
		{"in new directories", "", true, []protocol.ApplyEntry{put("p/q/r", "1"), put("dir/new", "2")}, "p/q/r\ndir/new\n", "cat p/q/r dir/new dir/one", "121", ""},
		{"a deleted file", "", true, []protocol.ApplyEntry{del("a.txt"), del("nosuch"), del("no/such")}, "a.txt\nnosuch\nno/such\n", "ls a.txt 2>&1", "ls: cannot access 'a.txt': No such file or directory\n", ""},
		{"a deleted directory", "", true, []protocol.ApplyEntry{del("dir/one"), del("dir/two"), del("dir/sub/three")}, "dir/one\ndir/two\ndir/sub/three\n", "ls -d dir 2>&1", "ls: cannot access 'dir': No such file or directory\n", ""},
		{"file to directory", "", true, []protocol.ApplyEntry{del("a.txt"), put("a.txt/b", "1")}, "a.txt\na.txt/b\n", "cat a.txt/b", "1", ""},
		{"file to directory in one", "", true, []protocol.ApplyEntry{put("a.txt/b", "1")}, "a.txt/b\n", "cat a.txt/b", "1", ""},
		{"directory to file", "", true, []protocol.ApplyEntry{del("dir/one"), del("dir/two"), del("dir/sub/three"), put("dir", "1")}, "dir/one\ndir/two\ndir/sub/three\ndir\n", "cat dir", "1", ""},
		{"directory to file in a directory that empties", "", true, []protocol.ApplyEntry{del("deep/er/file"), put("deep/er", "1")}, "deep/er/file\ndeep/er\n", "cat deep/er", "1", ""},
		{"over what was acknowledged", "echo mine > a.txt; echo n > n; rm b.txt", true, []protocol.ApplyEntry{put("a.txt", "2"), put("n", "3"), put("b.txt", "4")}, "a.txt\nn\nb.txt\n", "cat a.txt n b.txt", "234", ""},
		{"over a change", "echo mine > a.txt; echo n > n; rm b.txt", false, []protocol.ApplyEntry{put("a.txt", "2"), put("n", "3"), put("b.txt", "4"), put("run.sh", "5")}, "a.txt dirty\nn dirty\nb.txt dirty\nrun.sh\n", "cat a.txt n run.sh; ls b.txt 2>/dev/null", "mine\nn\n5", "\"a.txt\" x=mine\n\n\"b.txt\" deleted\n\"n\"=n\n\n"},
		{"over a change by force", "echo mine > a.txt; rm b.txt; mkdir n; echo x > n/x", false, []protocol.ApplyEntry{force(put("a.txt", "2")), force(put("b.txt", "4")), force(put("n", "5"))}, "a.txt\nb.txt\nn\n", "cat a.txt b.txt n", "245", ""},
		{"a delete over a change", "echo mine > a.txt", false, []protocol.ApplyEntry{del("a.txt")}, "a.txt dirty\n", "cat a.txt", "mine\n", "\"a.txt\" x=mine\n\n"},
		{"where a command removed the directory", "rm -r dir", false, []protocol.ApplyEntry{put("dir/one", "2")}, "dir/one dirty\n", "ls -d dir 2>/dev/null; :", "", "\"dir\" deleted\n"},
		{"the last file of a directory whose other a command removed", "rm dir/one dir/sub/three", false, []protocol.ApplyEntry{del("dir/two")}, "dir/two\n", "ls -A dir", "sub\n", "\"dir\" dir\n\"dir/one\" deleted\n\"dir/sub\" dir\n\"dir/sub/three\" deleted\n"},
		{"the last file of an emptied directory", "rm dir/one; rm -r dir/sub", false, []protocol.ApplyEntry{del("dir/two")}, "dir/two\n", "ls -d dir 2>/dev/null; :", "", "\"dir\" deleted\n"},
		{"a file for a directory that a command emptied", "rm dir/one; rm -r dir/sub; rm dir/two", false, []protocol.ApplyEntry{put("dir", "1")}, "dir dirty\n", "ls -A dir", "", "\"dir\" dir\n\"dir/one\" deleted\n\"dir/sub\" deleted\n\"dir/two\" deleted\n"},
		{"where a command made a directory", "mkdir n; echo x > n/x", false, []protocol.ApplyEntry{put("n", "1")}, "n dirty\n", "cat n/x", "x\n", "\"n\" opaque dir\n\"n/x\"=x\n\n"},
		{"through a planted link", "ln -s /tmp up; rm -r dir; ln -s /run/satchel dir", false, []protocol.ApplyEntry{put("up/evil", "1"), put("dir/one", "2"), del("up/x")}, "up/evil dirty\ndir/one dirty\nup/x dirty\n", "ls /tmp /run/satchel", "/run/satchel:\njobs\noutput\n\n/tmp:\nhome\n", "\"dir\" link=/run/satchel\n\"up\" link=/tmp\n"},
		{"through a planted link by force", "echo safe > /tmp/t; ln -s /tmp up; ln -s /tmp/t l", false, []protocol.ApplyEntry{force(put("up/t", "1")), force(put("l", "2"))}, "up/t\nl\n", "cat /tmp/t up/t l", "safe\n12", ""},
		{"through a planted link on the way", "mkdir /tmp/sub; ln -s /tmp up", false, []protocol.ApplyEntry{force(put("up/sub/t", "1"))}, "up/sub/t\n", "ls /tmp/sub; cat up/sub/t", "1", ""},
		{"paths that leave", "", true, []protocol.ApplyEntry{put("../x", "1"), put("/tmp/x", "1"), put(".git/x", "1"), put("a/../../x", "1"), put("", "1")}, "../x problem\n/tmp/x problem\n.git/x problem\na/../../x problem\n problem\n", "ls /tmp", "home\n", ""},
		{"with the name for new files taken", "for i in $(seq 0 5); do ln -s /tmp/t .satchel-apply-$i; done", true, []protocol.ApplyEntry{put("n", "1")}, "n\n", "cat n; ls /tmp", "1home\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startSandbox(t, sandboxOption{seed: testSeed})
			s.sh(c.before)
			if c.ack {
				s.collect()
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

func TestApplyWhileCommandsRun(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{seed: testSeed})
	ends := make(chan protocol.JobEnd, 1)
	s.OnJobEnd(func(e protocol.JobEnd) { ends <- e })
	// Whoever reads sees the old or the new content as a whole.
	r := s.exec(protocol.ExecRequest{Background: true, Command: `until [ -e stop ]; do x=$(cat big 2>/dev/null | tr -d '\n' | fold -w1 | sort -u | wc -l); [ "$x" -le 1 ] || exit 1; done`})
	for i := range 20 {
		s.apply(put("big", strings.Repeat(string(rune('a'+i)), 100_000)))
		s.sh(":") // the other command goes on meanwhile
	}
	s.sh("touch stop")
	if e := <-ends; e.ExitCode != 0 {
		t.Errorf("a command saw half a file: %+v %s", e, s.sh("cat "+r.JobDir+"/stderr"))
	}
	if got := brief(s.collect()); got != "\"stop\"\n" {
		t.Errorf("%s", got)
	}
}

// The first file of a new directory is no less the host's than the others.
func TestApplyMakesDirectoriesWhileCommandsRun(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{seed: testSeed})
	s.exec(protocol.ExecRequest{Background: true, Command: "sleep 1000"})
	s.sh("rm -r dir")
	s.collect()
	if got := s.apply(put("new/deep/a", "a"), put("new/deep/b", "b"), put("dir/deep/c", "c")); strings.Contains(got, "dirty") {
		t.Errorf("%s", got)
	}
	if got := s.sh("cat new/deep/* dir/deep/c; ls dir"); got != "abcdeep\n" && got != "abcdeep" {
		t.Errorf("inside is %q", got)
	}
	if got := brief(s.collect()); got != "" {
		t.Errorf("the host gets its own changes back: %s", got)
	}
}

// Directories without files are nothing that the host could know, and in no
// file's way; nor are they where a command works in them.
func TestApplyReplacesDirectoriesWithoutFiles(t *testing.T) {
	t.Parallel()
	for _, busy := range []bool{false, true} {
		s := startSandbox(t, sandboxOption{seed: testSeed})
		if busy {
			s.exec(protocol.ExecRequest{Background: true, Command: "sleep 1000"})
		}
		s.sh("rm a.txt; mkdir -p a.txt/q/r a.txt/s b/c w/x; echo f > a.txt/f; echo f > b/c/f")
		s.collect()
		s.sh("rm a.txt/f")
		s.collect()
		if got := s.apply(put("a.txt", "newer\n"), put("b", "newer\n")); got != "a.txt\nb dirty\n" {
			t.Errorf("busy %t: %s", busy, got)
		}
		if got := s.sh("cat a.txt b/c/f; ls"); got != "newer\nf\na.txt\nb\nb.txt\ndeep\ndir\nrun.sh\nw\n" {
			t.Errorf("busy %t: inside is %q", busy, got)
		}
		s.exec(protocol.ExecRequest{Background: true, Command: "cd w/x && sleep 1000"})
		s.sh("until ls -l /proc/[0-9]*/cwd 2>/dev/null | grep -q /space/w/x; do sleep 0.01; done")
		if got := s.apply(put("w", "newer\n")); got != "w dirty\n" {
			t.Errorf("a directory that a command works in: %s", got)
		}
		if got := brief(s.collect()); got != "" {
			t.Errorf("busy %t: the host is told %s", busy, got)
		}
	}
}

func TestApplyOnAFullDisk(t *testing.T) {
	t.Parallel()
	b := testBoot()
	b.Disk = 1 << 20
	s := startSandbox(t, sandboxOption{boot: b, seed: testSeed})
	if got := s.apply(put("a.txt", strings.Repeat("x", 2<<20)), put("b.txt", "fits")); got != "a.txt problem\nb.txt\n" {
		t.Errorf("%s", got)
	}
	if got := s.sh("cat a.txt b.txt; ls -A | grep satchel || :"); got != "afits" {
		t.Errorf("%q", got)
	}
	if got := brief(s.collect()); got != "" {
		t.Errorf("%s", got)
	}
}
