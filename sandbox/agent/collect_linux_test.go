package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/protocol"
)

var testSeed = map[string]string{
	"a.txt": "a", "b.txt": "b", "run.sh": "#!/bin/sh\n",
	"dir/one": "1", "dir/two": "2", "dir/sub/three": "3", "deep/er/file": "4",
}

// brief writes a batch down: one line per path.
func brief(m map[string]protocol.Entry) string {
	var w strings.Builder
	for _, p := range slices.Sorted(maps.Keys(m)) {
		n := m[p]
		fmt.Fprintf(&w, "%q", p)
		for _, f := range []struct {
			set  bool
			text string
		}{
			{n.Deleted, "deleted"}, {n.Opaque, "opaque"}, {n.Dir, "dir"}, {n.Busy, "busy"},
			{n.Mode == space.Executable, "x"}, {n.Mode == space.Symlink, "link"}, {n.Problem != "", "problem"},
		} {
			if f.set {
				w.WriteString(" " + f.text)
			}
		}
		if len(n.Content) > 0 {
			fmt.Fprintf(&w, "=%.40s", n.Content)
		}
		w.WriteString("\n")
	}
	return w.String()
}

// Each case runs commands one after the other in one sandbox, with a
// collection after each.
func TestCollect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		steps []string // command, what is told, command, …
	}{
		{"nothing", []string{"cat *; find . >/dev/null", ""}},
		{"a new file, changed, changed back, removed", []string{
			"echo 1 > n", "\"n\"=1\n\n",
			":", "",
			"echo 2 > n", "\"n\"=2\n\n",
			"echo 1 > n", "\"n\"=1\n\n",
			"rm n", "\"n\" deleted\n",
			":", "",
		}},
		{"the same size and time again", []string{
			"echo 1 > n; touch -d @1000000000 n", "\"n\"=1\n\n",
			"echo 2 > n; touch -d @1000000000 n", "\"n\"=2\n\n",
		}},
		{"a file of the checkout", []string{
			"echo more >> a.txt", "\"a.txt\" x=amore\n\n",
			"rm a.txt", "\"a.txt\" deleted\n",
			"echo new > a.txt", "\"a.txt\"=new\n\n",
		}},
		{"modes", []string{
			"touch n; chmod 755 n; chmod 644 run.sh", "\"n\" x\n\"run.sh\"=#!/bin/sh\n\n",
			"chmod 644 n", "\"n\"\n",
		}},
		{"symbolic links", []string{
			"ln -s a.txt l; ln -s /etc/passwd out; ln -s ../.. up; ln -s nowhere dangling", "\"dangling\" link=nowhere\n\"l\" link=a.txt\n\"out\" link=/etc/passwd\n\"up\" link=../..\n",
			"ln -sfn b.txt l", "\"l\" link=b.txt\n",
			"rm l; echo file > l", "\"l\"=file\n\n",
		}},
		{"hard links", []string{"echo x > h1; ln h1 h2", "\"h1\"=x\n\n\"h2\"=x\n\n"}},
		{"renamed file", []string{"mv a.txt z.txt", "\"a.txt\" deleted\n\"z.txt\" x=a\n"}},
		{"renamed directory of the checkout", []string{
			"mv dir moved", "\"dir\" deleted\n\"moved\" opaque dir\n\"moved/one\" x=1\n\"moved/sub\" dir\n\"moved/sub/three\" x=3\n\"moved/two\" x=2\n",
		}},
		{"renamed new directory", []string{
			"mkdir n; echo 1 > n/f", "\"n\" opaque dir\n\"n/f\"=1\n\n",
			"mv n m", "\"m\" opaque dir\n\"m/f\"=1\n\n\"n\" deleted\n\"n/f\" deleted\n",
		}},
		{"directory deleted", []string{"rm -r dir", "\"dir\" deleted\n"}},
		{"directory deleted and made again", []string{
			"rm -r dir; mkdir dir; echo n > dir/new", "\"dir\" opaque dir\n\"dir/new\"=n\n\n",
			"rm -r dir; mkdir dir", "\"dir\" opaque dir\n\"dir/new\" deleted\n",
		}},
		{"file becomes directory and back", []string{
			"rm a.txt; mkdir a.txt; echo f > a.txt/f", "\"a.txt\" opaque dir\n\"a.txt/f\"=f\n\n",
			"rm -r a.txt; echo back > a.txt", "\"a.txt\"=back\n\n\"a.txt/f\" deleted\n",
		}},
		{"in a directory of the checkout", []string{"echo x > deep/er/new; rm deep/er/file", "\"deep\" dir\n\"deep/er\" dir\n\"deep/er/file\" deleted\n\"deep/er/new\"=x\n\n"}},
		{"FIFO, socket, device", []string{
			"mkfifo f; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'; ! mknod d c 1 3 2>/dev/null; ! mknod w c 0 0 2>/dev/null; echo after > z",
			"\"f\" problem\n\"s\" problem\n\"z\"=after\n\n",
		}},
		{"odd names", []string{
			"touch -- $'new\\nline' $'bad\\xff\\xfe' ' ' '-rf' '*' $'esc\\e[31m' '\\' 'ü'",
			`" "` + "\n" + `"*"` + "\n" + `"-rf"` + "\n" + `"\\"` + "\n" + `"bad\xff\xfe"` + "\n" + `"esc\x1b[31m"` + "\n" + `"new\nline"` + "\n" + `"ü"` + "\n",
		}},
		{"nested repository", []string{"mkdir -p r/.git/hooks; echo evil > r/.git/config", "\"r\" opaque dir\n\"r/.git\" dir\n\"r/.git/config\"=evil\n\n\"r/.git/hooks\" dir\n"}},
		{"the git view is not reported and cannot be changed", []string{
			"! touch .git/x 2>/dev/null; ! rm -rf .git 2>/dev/null; ! mv .git g 2>/dev/null; ! ln -s x .git/y 2>/dev/null; cat .git/HEAD > head", "\"head\"=ref: refs/heads/main\n\n",
		}},
		{"unreadable by its mode", []string{"echo s > n; chmod 0 n; mkdir d; echo t > d/f; chmod 0 d", "\"d\" opaque dir\n\"d/f\" problem\n\"n\" problem\n"}},
		{"sparse and huge", []string{"truncate -s 30M huge; echo small > s", "\"huge\" problem\n\"s\"=small\n\n"}},
		{"shared mapping", []string{
			"python3 -c 'import mmap; f=open(\"a.txt\",\"r+b\"); m=mmap.mmap(f.fileno(),1); m[0:1]=b\"Z\"; m.close()'", "\"a.txt\" x=Z\n",
			"python3 -c 'import mmap,time; f=open(\"a.txt\",\"r+b\"); m=mmap.mmap(f.fileno(),1); f.close(); m[0:1]=b\"Y\"; m.close()'", "\"a.txt\" x=Y\n",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startSandbox(t, sandboxOption{seed: testSeed})
			for i := 0; i < len(c.steps); i += 2 {
				s.sh(c.steps[i])
				if got := brief(s.collect()); got != c.steps[i+1] {
					t.Errorf("%s\ngot:\n%swant:\n%s", c.steps[i], got, c.steps[i+1])
				}
			}
		})
	}
}

func TestCollectTellsAgainWhatWasNotAcknowledged(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{seed: testSeed})
	s.sh("echo 1 > one; echo 2 > two; rm a.txt")
	first := s.batch(protocol.CollectLimits{})
	second := s.batch(protocol.CollectLimits{})
	if brief(byPath(first)) != brief(byPath(second)) || len(first.Entries) != 3 {
		t.Errorf("%s\n%s", brief(byPath(first)), brief(byPath(second)))
	}
	s.sh("echo changed > one") // after the collection, before the acknowledgement
	must(t, s.Ack(t.Context(), second.ID, []string{"two"}))
	if got := brief(s.collect()); got != "\"one\"=changed\n\n\"two\"=2\n\n" {
		t.Errorf("%s", got)
	}
	if err := s.Ack(t.Context(), second.ID, nil); err == nil {
		t.Error("acknowledged twice")
	}
	if got := brief(s.collect()); got != "" {
		t.Errorf("%s", got)
	}
}

func TestCollectWithinLimits(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	s.sh("for i in $(seq 10); do head -c 1000 /dev/zero > f$i; done")
	collected := 0
	for rounds := 0; ; rounds++ {
		b := s.batch(protocol.CollectLimits{Entries: 100, FileSize: 10_000, Total: 10_000 / 3})
		collected += len(b.Entries)
		must(t, s.Ack(t.Context(), b.ID, nil))
		if !b.More {
			break
		}
		if rounds > 5 {
			t.Fatal("does not end")
		}
	}
	if collected != 10 {
		t.Errorf("%d files", collected)
	}
	s.sh("rm f*")
	if b := s.batch(protocol.CollectLimits{Entries: 4}); len(b.Entries) != 4 || !b.More {
		t.Errorf("%d %v", len(b.Entries), b.More)
	}
}

// A path that a running command has open for writing is not reported until it is closed.
func TestCollectLeavesBusyFiles(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{seed: testSeed})
	for name, command := range map[string]string{
		"open":   "exec 5>%s; echo half >&5; touch ready; until [ -e go ]; do sleep 0.02; done; echo whole >&5; rm go ready",
		"mapped": "exec python3 -c 'import mmap,os,time\nf=open(\"%s\",\"w+b\"); f.write(b\"half\\n\"); f.flush(); m=mmap.mmap(f.fileno(),5); f.close(); open(\"ready\",\"w\")\nwhile not os.path.exists(\"go\"): time.sleep(0.02)\nm[0:5]=b\"whole\"; os.remove(\"go\"); os.remove(\"ready\")'",
	} {
		t.Run(name, func(t *testing.T) {
			ends := make(chan protocol.JobEnd, 1)
			s.OnJobEnd(func(e protocol.JobEnd) { ends <- e })
			s.exec(protocol.ExecRequest{Command: fmt.Sprintf(command, name), Background: true})
			s.sh("until [ -e ready ]; do sleep 0.02; done; echo other > other-" + name)
			got := s.collect()
			if n := got[name]; !n.Busy || len(n.Content) != 0 {
				t.Errorf("not busy: %+v", n)
			}
			if string(got["other-"+name].Content) != "other\n" {
				t.Errorf("the rest: %s", brief(got))
			}
			s.sh("touch go")
			<-ends
			if n := s.collect()[name]; n.Busy || !strings.Contains(string(n.Content), "whole") {
				t.Errorf("afterwards: %+v", n)
			}
		})
	}
}

// An 80 kB deep path made git add succeed and commit nothing of it.
func TestCollectDeepPath(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	s.sh(`echo 1 > before; python3 -c '
import os
for i in range(400):
    os.mkdir("d"*200); os.chdir("d"*200)
open("bottom","w").write("x")
'; mkdir -p $(printf 'e/%.0s' $(seq 80)); echo 2 > zafter`)
	got := s.collect()
	if string(got["before"].Content) != "1\n" || string(got["zafter"].Content) != "2\n" {
		t.Errorf("others are hidden")
	}
	problems := 0
	for p, n := range got {
		if n.Problem != "" {
			problems++
			t.Logf("%.20s…(%d): %s", p, len(p), n.Problem)
		}
	}
	if problems != 2 {
		t.Errorf("%d problems", problems)
	}
}

// The cost of collecting and applying many files grows linearly with their number.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	boot := testBoot()
	boot.Disk, boot.Inodes = 1<<30, 400_000 // a file takes a page
	s := startSandbox(t, sandboxOption{boot: boot})
	number, applied := 1500, 200
	if testenv.Soak() {
		number, applied = 100_000, 2000
	}
	s.sh(fmt.Sprintf(`mkdir -p many/deep; python3 -c '
for i in range(%d): open("many/deep/%%d" %% i, "w").write(str(i))'`, number))
	start := time.Now()
	collected := 0
	for after := uint64(0); ; {
		b := s.batch(protocol.CollectLimits{Entries: 50_000, After: after})
		after = b.ID
		collected += len(b.Entries)
		must(t, s.Ack(t.Context(), b.ID, nil))
		if !b.More {
			break
		}
	}
	t.Logf("collected %d in %v", collected, time.Since(start))
	if collected != number+2 {
		t.Errorf("%d entries", collected)
	}

	s.sh("echo new > many/deep/5")
	start = time.Now()
	if got := s.collect(); len(got) != 1 {
		t.Errorf("%d entries", len(got))
	}
	t.Logf("one more in %v", time.Since(start))

	// Beside a command that runs, each is set aside.
	job := s.exec(protocol.ExecRequest{Command: "exec sleep 1001", Background: true})
	for _, quiet := range []bool{false, true} {
		var entries []protocol.ApplyEntry
		for i := range applied {
			entries = append(entries, put(fmt.Sprintf("many/deep/%d", i), fmt.Sprint("new", i, quiet)))
		}
		start = time.Now()
		rs, err := s.Apply(t.Context(), entries)
		must(t, err)
		t.Logf("applied %d in %v, no command runs: %v", len(rs), time.Since(start), quiet)
		for _, r := range rs {
			if r.Dirty || r.Problem != "" {
				t.Fatalf("%+v", r)
			}
		}
		if !quiet {
			must(t, s.Kill(t.Context(), job.JobID, "KILL"))
			s.sh("until grep -q killed " + job.JobDir + "/status; do sleep 0.02; done")
		}
	}
	if got := s.collect(); len(got) != 0 {
		t.Errorf("%d entries", len(got))
	}

	// A whole tree is renamed, and removed.
	start = time.Now()
	s.sh("mv many moved")
	if got := s.batch(protocol.CollectLimits{Entries: 500_000}); len(got.Entries) != 2*(number+2) {
		t.Errorf("%d entries of a renamed tree", len(got.Entries))
	} else {
		must(t, s.Ack(t.Context(), got.ID, nil))
	}
	t.Logf("renamed and told in %v", time.Since(start))
	start = time.Now()
	s.sh("rm -r moved")
	if got := s.batch(protocol.CollectLimits{Entries: 500_000}); len(got.Entries) != number+2 {
		t.Errorf("%d entries of a removed tree", len(got.Entries))
	}
	t.Logf("removed and told in %v", time.Since(start))
}

func TestFullUpper(t *testing.T) {
	t.Parallel()
	b := testBoot()
	b.Disk, b.Inodes = 2<<20, 200
	s := startSandbox(t, sandboxOption{boot: b, seed: testSeed})
	s.sh("! head -c 4M /dev/zero > big 2>/tmp/err; grep -q 'No space left' /tmp/err")
	if n := s.collect()["big"]; n.Size == 0 || n.Size > 2<<20 {
		t.Errorf("%d", n.Size)
	}
	s.sh("! echo x > full 2>/dev/null || :; rm big; echo ok > ok")
	s.sh("for i in $(seq 300); do : > i$i; done 2>/tmp/err; grep -q 'No space left' /tmp/err; rm i*")
	got := s.collect()
	if string(got["ok"].Content) != "ok\n" || !got["big"].Deleted {
		t.Errorf("%s", brief(got))
	}
	s.sh("! head -c 20M /dev/zero > /tmp/big 2>/dev/null; rm /tmp/big; echo still > there")
}

// A file that changes while it is collected is reported again until it is complete.
func TestCollectWhileWriting(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Exec(context.Background(), protocol.ExecRequest{Command: `for i in $(seq 200); do for f in a b c; do echo $i > $f; done; done`, HeadTail: 10}, nil)
	}()
	last := map[string]string{}
	note := func(m map[string]protocol.Entry) {
		for p, n := range m {
			if !n.Busy {
				last[p] = string(n.Content)
			}
		}
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			note(s.collect())
		}
	}
	note(s.collect())
	if want := map[string]string{"a": "200\n", "b": "200\n", "c": "200\n"}; !maps.Equal(last, want) {
		t.Errorf("%q", last)
	}
}
