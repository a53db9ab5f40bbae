package sandboxtest_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"satchel/gitstore"
	"satchel/gitstore/transport"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/sandboxtest"
)

// elsewhere is another person's clone of a space's remote.
type elsewhere struct {
	t   *testing.T
	dir string
}

func (e elsewhere) git(args ...string) string {
	e.t.Helper()
	out, err := testenv.Git(e.t, e.dir, args...).CombinedOutput()
	if err != nil {
		e.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (e elsewhere) sh(command string) {
	e.t.Helper()
	cmd := exec.Command("bash", "-ec", command)
	cmd.Dir = e.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		e.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// TestARemotesCommitsReachALiveSandboxOverGVisor: what someone pushed to the
// remote is merged and brought in while a job runs in the sandbox, which goes
// on with its files and its directory; where both changed a file, both are kept.
func TestARemotesCommitsReachALiveSandboxOverGVisor(t *testing.T) {
	t.Parallel()
	client := transport.New(transport.Options{Logger: sandboxtest.Logger(t)})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	s := newScreenedStore(t, func(o *gitstore.Options) { o.Transport = client }, nil)
	root := t.TempDir()
	bare, work := elsewhere{t, filepath.Join(root, "remote.git")}, elsewhere{t, filepath.Join(root, "work")}
	elsewhere{t, root}.git("init", "-q", "--bare", "-b", "main", bare.dir)
	remote := transport.Endpoint{URL: bare.dir, Trusted: true}

	s.run(`mkdir -p old/{1..6} pages; for i in {1..300}; do echo $i > old/$((i%6+1))/$i.md; done
		for i in {1..40}; do echo line $i; done > both.md; cp both.md merged.md; echo log > pages/log; printf '#!/bin/sh\n' > tool; echo r > pages/read`)
	if _, err := s.store.Push(t.Context(), s.id, remote, "main", nil); err != nil {
		t.Fatal(err)
	}
	elsewhere{t, root}.git("clone", "-q", bare.dir, work.dir)
	work.sh(`for i in {1..400}; do mkdir -p new/$((i%8)); echo $i > new/$((i%8))/$i.md; done
		rm -r old docs; echo 'a file now' > old; chmod +x tool; sed -i 's/line 1$/theirs/' both.md merged.md; rm pages/read; echo theirs >> pages/log; mv readme.md README`)
	work.git("add", "-A")
	work.git("commit", "-q", "-m", "Elsewhere")
	work.git("push", "-q", "origin", "main")

	job := s.request(`trap ': > /tmp/done' EXIT; cd old/3; exec 3<../../pages/read 4>>../../pages/log; : > /tmp/ready; until [ -e /tmp/go ]; do sleep 0.02; done
		cat <&3 || exit 3; echo job >&4 || exit 4; [ -e 2.md ] && exit 5; echo late > late || exit 6; pwd`)
	job.Background = true
	started, err := s.pool.Exec(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	for s.run("test -e /tmp/ready").ExitCode != 0 {
	}
	s.run(`sed -i 's/line 1$/mine/' both.md; sed -i 's/line 40$/mine/' merged.md`)

	got, err := s.store.Fetch(t.Context(), s.id, remote, "main", nil)
	if err != nil {
		t.Fatal(err)
	}
	in, err := s.store.Integrate(t.Context(), s.id, got.Tip, space.Meta{Message: "Merge"})
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Commit.Conflicts) != 1 || in.Commit.Conflicts[0].Path != "both.md" || in.Commit.Conflicts[0].Kept == "" {
		t.Fatalf("%+v", in.Commit.Conflicts)
	}
	kept := in.Commit.Conflicts[0].Kept
	r := s.run(fmt.Sprintf(`find new -type f | wc -l; head -1 both.md; head -1 %s; head -1 merged.md; tail -1 merged.md; test -x tool && ls README; ls docs readme.md pages/read 2>/dev/null; ls old; git log -1 --format=%%s`, kept))
	lines := strings.Split(r.Stdout.Text, "\n")
	want := []string{"400", "theirs", "mine", "theirs", "mine", "README"}
	if len(lines) < len(want) || strings.Join(lines[:len(want)], " ") != strings.Join(want, " ") || r.Restarted || len(r.Conflicts) > 0 {
		t.Errorf("inside: %q; applied %d, notes %q", r.Stdout.Text, len(r.Applied), r.Notes)
	}
	if strings.Contains(r.Stdout.Text, ".md\n") {
		t.Errorf("files that the remote deleted are still there: %q", r.Stdout.Text)
	}
	// The job goes on where it was, and what it wrote is committed beside theirs.
	s.run(": > /tmp/go")
	for s.run("test -e /tmp/done").ExitCode != 0 {
	}
	if ended := s.run("cat " + started.JobDir + "/stdout " + started.JobDir + "/stderr"); ended.Stdout.Text != "r\n/space/old/3\n" {
		t.Errorf("the job printed %q", ended.Stdout.Text)
	}
	if err := s.pool.StopSpace(t.Context(), s.id); err != nil {
		t.Fatal(err)
	}
	r = s.run(`cat old; cat pages/log; cat pages/log.conflict-*; cat old.conflict-*/3/late`)
	if want := "a file now\nlog\ntheirs\nlog\njob\nlate\n"; r.Stdout.Text != want {
		t.Errorf("in the end: %q, want %q\n%s", r.Stdout.Text, want, s.run("git log --stat -5; find . -name '*conflict*'").Stdout.Text)
	}
}
