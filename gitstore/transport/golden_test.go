package transport

import (
	"encoding/json"
	"os"
	"path/filepath"
	"satchel/internal/space"
	"strings"
	"testing"
)

// want is the last part of a file of testdata/refusals: the expected reading of git's output
// when a hosting service refused a push. The files have this format, with names and hashes
// replaced:
//
//	<git's standard output, for push --porcelain>
//	--- stderr
//	<git's standard error>
//	--- want
//	<JSON of want>
type want struct {
	Problem Problem                `json:"problem"`
	Status  int                    `json:"status,omitempty"`
	Paths   []space.RemoteLocation `json:"paths,omitempty"`
	Says    string                 `json:"says,omitempty"` // is in one of Error.Said
}

func TestRecordedRefusals(t *testing.T) {
	files, err := filepath.Glob("testdata/refusals/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d recordings: %v", len(files), err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			stdout, stderr, w := readGolden(t, f)
			e := readGit(stdout, stderr)
			if e.Problem != w.Problem || e.Status != w.Status {
				t.Errorf("got %s %d, want %s %d", e.Problem, e.Status, w.Problem, w.Status)
			}
			got, _ := json.Marshal(e.Paths)
			if exp, _ := json.Marshal(w.Paths); string(got) != string(exp) {
				t.Errorf("found %s, want %s", got, exp)
			}
			if all := strings.Join(e.Said, "\n"); !strings.Contains(all, w.Says) {
				t.Errorf("it said %q, want %q", all, w.Says)
			}
			for _, line := range e.Said {
				if line != cleanLine(line) || len(line) > maxSaid {
					t.Errorf("a line for people is %q", line)
				}
			}
			if e.Temporary() && w.Problem != Server && w.Problem != RateLimited && w.Problem != Stale && w.Problem != Busy && w.Problem != Network && w.Problem != Timeout {
				t.Error("it would be tried again soon")
			}
		})
	}
}

func readGolden(t testing.TB, name string) (stdout, stderr string, w want) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	stdout, rest, ok := strings.Cut(string(data), "--- stderr\n")
	stderr, text, ok2 := strings.Cut(rest, "--- want\n")
	if !ok || !ok2 {
		t.Fatalf("%s has no three parts", name)
	}
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	return stdout, stderr, w
}

func FuzzReadGit(f *testing.F) {
	files, _ := filepath.Glob("testdata/refusals/*.txt")
	for _, name := range files {
		stdout, stderr, _ := readGolden(f, name)
		f.Add(stdout, stderr)
	}
	f.Fuzz(func(t *testing.T, stdout, stderr string) {
		e := readGit(stdout, stderr)
		if e.Problem == "" || len(e.Said) > maxSaidLines+1 || len(e.Paths) > maxPlaces {
			t.Errorf("got %+v", e)
		}
		for _, l := range e.Paths {
			if l.Path != cleanLine(l.Path) || l.Commit != "" && !l.Commit.Valid() || l.Line < 0 {
				t.Errorf("a place is %+v", l)
			}
		}
		for _, line := range append(e.Said, e.Public(), e.Remedy()) {
			if strings.ContainsAny(line, "\r\n\x00\x1b") || len(line) > 6<<10 {
				t.Errorf("a line for people is %q", line)
			}
		}
	})
}
