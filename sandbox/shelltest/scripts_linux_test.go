package shelltest_test

import (
	"archive/tar"
	"crypto/sha1"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// leastScripts is how many scripts there are at least: fewer means that the
// comparison has lost some of them.
const leastScripts = 130

// atOnce is how many scripts run at a time on each side.
const atOnce = 4

// script is one file of testdata.
type script struct{ name, text string }

func scripts(t *testing.T) []script {
	t.Helper()
	var all []script
	err := filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel("testdata", path)
		name := strings.ReplaceAll(strings.TrimSuffix(rel, ".sh"), string(filepath.Separator), "-")
		all = append(all, script{name: name, text: string(b)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < leastScripts {
		t.Fatalf("there are %d scripts, and %d are expected", len(all), leastScripts)
	}
	return all
}

// command makes the script's directory under the working directory and runs it
// there. Bash numbers the script's lines from 2 on, on both sides.
func (s script) command() string {
	return "mkdir " + s.name + " && cd " + s.name + " || exit 99\n" + s.text
}

// listing writes the working directory with those of all scripts as a tar, the
// same for the same files. What its user cannot read becomes readable first.
const listing = `find . -path ./.git -prune -o \( -type f ! -readable -o -type d ! \( -readable -executable \) \) -exec chmod u+rwX {} \; ; ` +
	`tar --exclude=./.git --sort=name --format=pax --owner=0 --group=0 --numeric-owner --mtime=@0 --pax-option=delete=atime,delete=ctime -cf - .`

// TestScripts runs every script of testdata once in a sandbox and once in the
// host's bash, in equal directories with equal environments, and compares what
// they print, how they end, and the files that they leave, byte for byte. What
// the space's head has afterwards is compared too.
func TestScripts(t *testing.T) {
	t.Parallel()
	all := scripts(t)
	for _, name := range []string{"bash", "awk", "diff", "patch", "jq", "python3", "tar", "rg"} {
		testenv.NeedProgram(t, name)
	}
	s := newShell(t, nil, func(o *sandbox.Options) { o.OutputChars = 32 << 20 })
	h := newHost(t, lines(s.print(t, "env")))
	got, want := s.outcomes(t, all), h.outcomes(t, all)
	for _, sc := range all {
		t.Run(sc.name, func(t *testing.T) {
			g := got[sc.name]
			if k, ok := knownDifferences[sc.name]; ok {
				if len(differences(g, want[sc.name])) == 0 {
					t.Errorf("this does not differ any more: %s", k.why)
				}
				k.undo(&g)
			}
			for _, d := range differences(g, want[sc.name]) {
				t.Error(d)
			}
		})
	}
	for name := range knownDifferences {
		if _, ok := got[name]; !ok {
			t.Errorf("there is no script %s", name)
		}
	}
	s.checkHead(t, got)
}

// knownDifferences are the scripts whose outcome differs for a reason that
// docs/shell.md gives; undo makes the outcome in a sandbox the host's.
var knownDifferences = map[string]struct {
	why  string
	undo func(*outcome)
}{
	"exit-syntax-error":       {evaluated, replaceStderr(`(?m)^bash: eval: `, "bash: -c: ")},
	"exit-syntax-error-quote": {evaluated, replaceStderr(`(?m)^bash: eval: `, "bash: -c: ")},
	"exit-trace":              {evaluated, replaceStderr(`(?m)^\+(\++ )`, "$1")},
	"flow-xtrace":             {evaluated, replaceStderr(`(?m)^(?:\+(\++ )|l(line 2> ))`, "$1$2")},
	"exit-signal-in-last-command": {"the shell stays until its last command has ended, and tells how", func(o *outcome) {
		replaceStderr(`^bash: line 2: +\d+ Aborted +python3 -c 'import os; os.abort\(\)'\n$`, "")(o)
		o.signal = "SIGABRT"
	}},
}

const evaluated = "a command is evaluated by a shell that was started before it came"

func replaceStderr(pattern, with string) func(*outcome) {
	return func(o *outcome) { o.stderr = regexp.MustCompile(pattern).ReplaceAll(o.stderr, []byte(with)) }
}

// TestScriptsSeeOneByte: the comparison detects a difference of one byte between two
// scripts, with both sides real.
func TestScriptsSeeOneByte(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil, nil)
	h := newHost(t, lines(s.print(t, "env")))
	const stdout, stderr, file, mode, code = `printf 'a\0b'; `, "echo e >&2; ", "echo f > f; ", "chmod 640 f; ", "exit 3"
	ours := script{"one", stdout + stderr + file + mode + code}
	got := s.outcomes(t, []script{ours})["one"]
	for name, theirs := range map[string]string{
		"":       ours.text,
		"stdout": `printf 'a\0c'; ` + stderr + file + mode + code,
		"stderr": stdout + "echo E >&2; " + file + mode + code,
		"a file": stdout + stderr + "echo F > f; " + mode + code,
		"a mode": stdout + stderr + file + "chmod 644 f; " + code,
		"exit":   stdout + stderr + file + mode + "exit 4",
		"signal": stdout + stderr + file + mode + "kill -QUIT $$",
		"name":   stdout + stderr + "echo f > f; " + mode + "mv f g; " + code,
	} {
		d := differences(got, h.outcomes(t, []script{{"one", theirs}})["one"])
		if (len(d) > 0) != (name != "") {
			t.Errorf("%q: %q", name, d)
		}
		h.clear(t)
	}
}

// together calls do for each script, a few at a time.
func together(all []script, do func(script) outcome) map[string]outcome {
	var wg sync.WaitGroup
	var mu sync.Mutex
	out := map[string]outcome{}
	todo := make(chan script)
	for range atOnce {
		wg.Go(func() {
			for sc := range todo {
				o := do(sc)
				mu.Lock()
				out[sc.name] = o
				mu.Unlock()
			}
		})
	}
	for _, sc := range all {
		todo <- sc
	}
	close(todo)
	wg.Wait()
	return out
}

// addTrees adds to each script's outcome its part of a tar of all.
func addTrees(t *testing.T, out map[string]outcome, listing []byte) {
	t.Helper()
	trees := map[string]map[string]entry{}
	for path, e := range readTree(t, listing) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(path, "./"), "/")
		if ok {
			if trees[name] == nil {
				trees[name] = map[string]entry{}
			}
			e.link = strings.TrimPrefix(e.link, "./"+name+"/") // a hard link's
			trees[name][rest] = e
		}
	}
	for name, o := range out {
		o.tree = trees[name]
		if o.tree == nil {
			t.Errorf("%s left not even its directory", name)
		}
		out[name] = o
	}
}

// outcomes runs scripts as the tool bash does, in one sandbox. The tool must show exactly
// what the agent reported, cleaned.
func (s *shell) outcomes(t *testing.T, all []script) map[string]outcome {
	t.Helper()
	out := together(all, func(sc script) outcome {
		r, err := s.pool.Exec(t.Context(), s.request(sc.command()))
		if err != nil || r.NotSaved != nil || r.End != protocol.Exited || r.JobID != "" {
			t.Errorf("%s ended as %v, %v, %v", sc.name, r.End, err, r.NotSaved)
			return outcome{}
		}
		s.refused(r)
		o := outcome{code: r.ExitCode, signal: r.Signal}
		o.stdout, o.stderr = s.bytesOf(t, sc.command())
		if r.Stdout.Text != sandbox.Clean(o.stdout) || r.Stderr.Text != sandbox.Clean(o.stderr) {
			t.Errorf("%s: the answer shows %.300q and %.300q", sc.name, r.Stdout.Text, r.Stderr.Text)
		}
		return o
	})
	if r := s.run(t, listing); r.ExitCode != 0 || r.Stderr.Text != "" {
		t.Fatalf("listing the tree: %s", r.Stderr.Text)
	}
	tree, _ := s.bytesOf(t, listing)
	addTrees(t, out, tree)
	return out
}

// checkHead compares the space's head with the sandbox's files: each is in it,
// and nothing else, but for what answers have refused.
func (s *shell) checkHead(t *testing.T, got map[string]outcome) {
	t.Helper()
	r := s.run(t, "true")
	s.refused(r)
	head, err := s.store.Head(t.Context(), s.space)
	if err != nil {
		t.Fatal(err)
	}
	files, err := s.store.Files(t.Context(), s.space, head, "")
	if err != nil {
		t.Fatal(err)
	}
	committed := map[string]space.BlobID{}
	for _, f := range files {
		committed[string(f.Path)] = f.Blob
	}
	for name, o := range got {
		for path, e := range o.tree {
			path = name + "/" + path
			content := e.content
			switch e.kind {
			case tar.TypeSymlink:
				content = e.link
			case tar.TypeLink:
				content = o.tree[e.link].content
			case tar.TypeReg:
			default:
				continue
			}
			want := fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)))
			_, there := committed[path]
			// What was refused while a script still worked on it may be in by now.
			if (there || !s.refusedPaths[path]) && string(committed[path]) != want {
				t.Errorf("%q is %q in head, and %q in the sandbox", path, committed[path], want)
			}
			delete(committed, path)
		}
	}
	for path := range committed {
		t.Errorf("%q is in head and not in the sandbox", path)
	}
}

// refused notes the paths that an answer names as not committed.
func (s *shell) refused(r sandbox.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range r.Refused {
		s.refusedPaths[f.Path] = true
	}
}
