package merge

import (
	"strings"
	"testing"
)

const oneHash = "0ff3bbb9c8bba2291654cd64067fa417ff54c508"

func TestMergeOutput(t *testing.T) {
	entry := "100644 " + oneHash + " 2\ta\nb.md\x00"
	renamed := "3\x00A\x00B\x00C\x00CONFLICT (rename/rename)\x00CONFLICT (rename/rename): A renamed\n\x00"
	for name, c := range map[string]struct {
		out             string
		stages, renames int
		bad             bool
	}{
		"clean":                     {out: oneHash + "\x00"},
		"clean with messages":       {out: oneHash + "\x00\x001\x00A\x00Auto-merging\x00Auto-merging A\n\x00"},
		"a conflict":                {out: oneHash + "\x00" + entry + "\x00", stages: 1},
		"conflicts and messages":    {out: oneHash + "\x00" + entry + entry + "\x00" + renamed + renamed, stages: 2, renames: 2},
		"nothing":                   {bad: true},
		"no hash":                   {out: "x\x00", bad: true},
		"a stage that is none":      {out: oneHash + "\x00" + strings.Replace(entry, " 2\t", " 4\t", 1) + "\x00", bad: true},
		"a mode that is none":       {out: oneHash + "\x00" + strings.Replace(entry, "100644", "rw", 1) + "\x00", bad: true},
		"no path":                   {out: oneHash + "\x00100644 " + oneHash + " 2\t\x00\x00", bad: true},
		"fewer paths than it says":  {out: oneHash + "\x00\x009\x00A\x00CONFLICT (contents)\x00x\x00", bad: true},
		"more paths than there are": {out: oneHash + "\x00\x00999999999999\x00A\x00", bad: true},
	} {
		m, err := parseMerge([]byte(c.out))
		if (err != nil) != c.bad {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (len(m.stages) != c.stages || len(m.renames) != c.renames || m.tree.String() != oneHash) {
			t.Errorf("%s: %+v", name, m)
		}
		if err == nil && c.stages > 0 && m.stages[0].path != "a\nb.md" {
			t.Errorf("%s: %q", name, m.stages[0].path)
		}
	}
}

// FuzzMergeOutput reads paths of a remote, which may be any bytes, in git's output.
func FuzzMergeOutput(f *testing.F) {
	f.Add([]byte(oneHash + "\x00100644 " + oneHash + " 1\ta\x00\x003\x00A\x00B\x00C\x00CONFLICT (rename/rename)\x00m\x00"))
	f.Add([]byte(oneHash + "\x00\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		m, err := parseMerge(out)
		if err != nil {
			return
		}
		for _, e := range m.stages {
			if e.path == "" || e.Mode == 0 || e.stage < 1 || e.stage > 3 {
				t.Fatalf("%+v", e)
			}
		}
	})
}
