package merge_test

import (
	"context"
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/gitstore"
	"satchel/internal/testenv"
	"satchel/web/merge"
)

// store returns the server's merger.
func store(t testing.TB) *gitstore.Store {
	t.Helper()
	s, err := gitstore.Open(gitstore.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// answers is a merger with fixed output that counts its input lines.
type answers struct {
	out   string
	err   error
	lines int
}

func (a *answers) MergeText(_ context.Context, texts, ours, theirs []byte) ([]byte, error) {
	for _, t := range [][]byte{texts, ours, theirs} {
		a.lines += strings.Count(string(t), "\n")
	}
	return []byte(a.out), a.err
}

func conflict(yours, theirs string) string {
	return merge.MarkYours + "\n" + yours + merge.MarkTheirs + "\n" + theirs + merge.MarkEnd + "\n"
}

// TestThree specifies what is merged and what is left to a person.
func TestThree(t *testing.T) {
	tests := []struct {
		name, base, yours, theirs, want string
		conflicts                       int
	}{
		{"nobody changed it", "a\nb\n", "a\nb\n", "a\nb\n", "a\nb\n", 0},
		{"only you did", "a\nb\n", "a\nB\n", "a\nb\n", "a\nB\n", 0},
		{"only they did", "a\nb\n", "a\nb\n", "A\nb\n", "A\nb\n", 0},
		{"different places", "a\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n", 0},
		{"the same change", "a\nb\n", "a\nX\n", "a\nX\n", "a\nX\n", 0},
		{"both add at the end, alike", "a\n", "a\nb\n", "a\nb\n", "a\nb\n", 0},
		{"you add above, they below", "a\n", "x\na\n", "a\ny\n", "x\na\ny\n", 0},
		{"you delete, they leave it", "a\nb\nc\n", "a\nc\n", "a\nb\nc\n", "a\nc\n", 0},
		{"the same line, differently", "a\nb\nc\n", "a\nB1\nc\n", "a\nB2\nc\n", "a\n" + conflict("B1\n", "B2\n") + "c\n", 1},
		{"what both added alike is no conflict", "a\nz\n", "a\nsame\nmine\nz\n", "a\nsame\ntheirs\nz\n", "a\nsame\n" + conflict("mine\n", "theirs\n") + "z\n", 1},
		{"you change what they delete", "a\nb\nc\n", "a\nB\nc\n", "a\nc\n", "a\n" + conflict("B\n", "") + "c\n", 1},
		{"a last line without an end", "a\nb", "a\nB", "a\nC", "a\n" + conflict("B\n", "C\n"), 1},
		{"attack: both delete one of equal lines, one adds above", "# T\n- [ ] milk\n- [ ] milk\n- [ ] milk\n", "# T\n- [ ] milk\n- [ ] milk\n", "new\n# T\n- [ ] milk\n- [ ] milk\n", "new\n# T\n- [ ] milk\n- [ ] milk\n", 0},
		{"the same the other way round", "# T\n- [ ] milk\n- [ ] milk\n- [ ] milk\n", "new\n# T\n- [ ] milk\n- [ ] milk\n", "# T\n- [ ] milk\n- [ ] milk\n", "new\n# T\n- [ ] milk\n- [ ] milk\n", 0},
		{"attack: equal lines within others", "x\na\na\ny\n", "x\na\na\na\ny\n", "D\nx\na\na\na\ny\n", "D\nx\na\na\na\ny\n", 0},
		{"attack: pairs of lines that repeat", "h\na\nb\na\nb\na\nb\n", "h\na\nb\na\nb\n", "new\nh\na\nb\na\nb\n", "new\nh\na\nb\na\nb\n", 0},
		{"attack: lines that are git's marks", "a\n=======\nb\n", "a\n<<<<<<< ours\n=======\nb\n", "a\n=======\n>>>>>>> theirs\nb\nc\n", "a\n<<<<<<< ours\n=======\n>>>>>>> theirs\nb\nc\n", 0},
		{"bytes that are no text", "\x00\xff\nm\nn\n", "\x00\n\xff\nm\nn\n", "\x00\xff\nm\nn\n\xfe\n", "\x00\n\xff\nm\nn\n\xfe\n", 0},
		{"everything anew", "", "mine\n", "theirs\n", conflict("mine\n", "theirs\n"), 1},
	}
	git := store(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := merge.Three(t.Context(), git.MergeText, tt.base, tt.yours, tt.theirs)
			if got.Text != tt.want || got.Conflicts != tt.conflicts {
				t.Errorf("%d conflicts:\n%s\nwant %d:\n%s", got.Conflicts, got.Text, tt.conflicts, tt.want)
			}
			if n := merge.Marked(got.Text); n != 3*tt.conflicts {
				t.Errorf("%d marks, want %d", n, 3*tt.conflicts)
			}
		})
	}
}

// Attack: texts have more lines than git can merge quickly. Git gets only the lines that
// differ, or none, and nothing is lost.
func TestLargeTexts(t *testing.T) {
	n := 1 << 18
	base := strings.Repeat("\n", n)
	yours := "x\n" + strings.Repeat(strings.Repeat("\n", n/8)+"y\n", 4) + "z\n"
	theirs := "a\n" + strings.Repeat("\n", n/2) + "b\n"
	git := &answers{}
	if got := merge.Three(t.Context(), git.MergeText, base, yours, theirs); got.Text != conflict(yours, theirs) || got.Conflicts != 1 || git.lines > 0 {
		t.Errorf("%d conflicts, %d lines given to git", got.Conflicts, git.lines)
	}
	var b strings.Builder
	for i := range 60_000 {
		b.WriteString(strings.Repeat("l", i%7) + string(rune('a'+i%26)) + "\n")
	}
	long := b.String()
	got := merge.Three(t.Context(), store(t).MergeText, long+"1\n2\n3\n"+long, long+"one\n2\n3\n"+long, long+"1\n2\nthree\n"+long)
	if got.Conflicts != 0 || got.Text != long+"one\n2\nthree\n"+long {
		t.Errorf("changes in the middle of a long text: %d conflicts", got.Conflicts)
	}
}

// TestWithoutGit checks that a person merges all differences if git is missing, too slow or
// prints nonsense.
func TestWithoutGit(t *testing.T) {
	want := "a\n" + conflict("B\nc\n", "b\nC\n") + "d\n"
	for name, git := range map[string]*answers{
		"no answer": {err: errors.New("no git")}, "no number": {out: "x\n"}, "no line of a text": {out: "99\n"}, "less than none": {out: "-1\n"},
		"a conflict without an end": {out: "0\n<<<<<<< ours\n1\n=======\n2\n"}, "without a middle": {out: "<<<<<<< ours\n1\n>>>>>>> theirs\n"},
	} {
		if got := merge.Three(t.Context(), git.MergeText, "a\nb\nc\nd\n", "a\nB\nc\nd\n", "a\nb\nC\nd\n"); got.Text != want || got.Conflicts != 1 {
			t.Errorf("%s: %q", name, got.Text)
		}
	}
}

// TestLikeGit compares Three with git merge-file on texts with many equal lines: the same
// places are merged or marked, with as many of each line.
func TestLikeGit(t *testing.T) {
	git, r := store(t), rand.New(rand.NewSource(7))
	dir := t.TempDir()
	for range 150 {
		kinds := 1 + r.Intn(4)
		made := make([]string, r.Intn(12))
		for i := range made {
			made[i] = string(rune('a' + r.Intn(kinds)))
		}
		changed := func() string {
			out := slices.Clone(made)
			for range 1 + r.Intn(3) {
				at := r.Intn(len(out) + 1)
				if r.Intn(2) == 0 || at == len(out) {
					out = slices.Insert(out, at, string(rune('a'+r.Intn(kinds+1))))
				} else {
					out = slices.Delete(out, at, at+1)
				}
			}
			return text(out)
		}
		base, yours, theirs := text(made), changed(), changed()
		for name, s := range map[string]string{"base": base, "yours": yours, "theirs": theirs} {
			write(t, filepath.Join(dir, name), s)
		}
		cmd := testenv.Git(t, dir, "merge-file", "-p", "yours", "base", "theirs")
		out, _ := cmd.Output() // fails if there are conflicts
		want, conflicts := string(out), strings.Count(string(out), "<<<<<<< ")
		for _, m := range [][2]string{{"<<<<<<< yours", merge.MarkYours}, {"=======", merge.MarkTheirs}, {">>>>>>> theirs", merge.MarkEnd}} {
			want = strings.ReplaceAll(want, m[0], m[1])
		}
		if got := merge.Three(t.Context(), git.MergeText, base, yours, theirs); got.Text != want || got.Conflicts != conflicts {
			t.Fatalf("%q with %q and %q is %q, and git's is %q", base, yours, theirs, got.Text, want)
		}
	}
}

func text(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

func write(t *testing.T, name, s string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(s), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestBothDeleteOneOfMany checks that one line is removed if both sides remove one of n
// equal lines.
func TestBothDeleteOneOfMany(t *testing.T) {
	git := store(t)
	for n := 2; n < 8; n++ {
		for _, around := range [][2]string{{"h\n", ""}, {"h\n", "t\n"}} {
			run := func(k int) string { return around[0] + strings.Repeat("m\n", k) + around[1] }
			got := merge.Three(t.Context(), git.MergeText, run(n), run(n-1), "top\n"+run(n-1))
			if got.Text != "top\n"+run(n-1) || got.Conflicts != 0 {
				t.Errorf("%d: %q", n, got.Text)
			}
		}
	}
}

func TestEndings(t *testing.T) {
	tests := []struct{ name, file, text, want string }{
		{"LF", "a\nb\n", "a\r\nB\r\n", "a\nB\n"},
		{"CRLF", "a\r\nb\r\n", "a\r\nB\r\nc\r\n", "a\r\nB\r\nc\r\n"},
		{"CR alone", "a\rb\r", "a\r\nb\r\nc\r\n", "a\rb\rc\r"},
		{"mixed: each line keeps its own", "a\r\nb\nc\n", "a\r\nnew\r\nb\r\nc\r\n", "a\r\nnew\nb\nc\n"},
		{"no newline at the end", "a\nb", "a\r\nB", "a\nB"},
		{"one at the end that was typed over", "a\nb\n", "a\r\nb\r\nc", "a\nb\nc\n"},
		{"a byte order mark", "\ufeffa\r\n", "b\r\n", "\ufeffb\r\n"},
		{"mixed: of equal lines the first keep theirs", "a\r\na\na\na\r", "a\r\na\r\na\r\n", "a\r\na\na\n"},
		{"mixed: a line that moved keeps its own", "a\r\nb\nc\nd\n", "d\r\nb\r\na\r\nnew\r\n", "d\nb\na\r\nnew\n"},
		{"a new file", "", "a\r\nb", "a\nb\n"},
		{"emptied", "a\n", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := merge.Endings(tt.file, tt.text); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	var from, to strings.Builder
	for i := range 40 {
		l := string(rune('A'+i)) + "\n"
		from.WriteString(l)
		if i == 20 {
			l = "changed\n"
		}
		to.WriteString(l)
	}
	hunks, cut := merge.Changes(from.String(), to.String(), 2, 100)
	if cut || len(hunks) != 1 || hunks[0].Line != 19 {
		t.Fatalf("%+v", hunks)
	}
	var got []string
	for _, l := range hunks[0].Lines {
		got = append(got, l.Mark()+l.Text)
	}
	if want := []string{" S", " T", "-U", "+changed", " V", " W"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if h, cut := merge.Changes("", strings.Repeat("x\n", 500), 3, 100); !cut || len(h[0].Lines) != 100 {
		t.Errorf("%d lines, cut %v", len(h[0].Lines), cut)
	}
	if h, _ := merge.Changes("a\n", "a\n", 3, 100); h != nil {
		t.Errorf("no difference: %v", h)
	}
}

// FuzzThree checks that a side without changes gets the other's text, and that no line is
// lost. If one side has a line more often than base, the result has it as often as that side.
func FuzzThree(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nB\nc\n", "a\nb\nC\n")
	f.Add("", "x", "y\n")
	f.Add("a\na\na\n", "a\n", "a\na\na\na")
	f.Add("T\nm\nm\nm\n", "T\nm\nm\n", "n\nT\nm\nm\n")
	f.Add("T\nm\nm\nm\n", "T\nm\nm\n", "n\n\"\nm\nm\n")
	git := store(f)
	f.Fuzz(func(t *testing.T, base, yours, theirs string) {
		for _, c := range []struct{ a, b, want string }{{yours, base, yours}, {base, theirs, theirs}, {yours, yours, yours}} {
			if got := merge.Three(t.Context(), git.MergeText, base, c.a, c.b); got.Text != c.want || got.Conflicts != 0 {
				t.Fatalf("%q with %q and %q is %+v, want %q", base, c.a, c.b, got, c.want)
			}
		}
		got := merge.Three(t.Context(), git.MergeText, base, yours, theirs)
		have, had, a, b := count(got.Text), count(base), count(yours), count(theirs)
		// Each side may have removed a different one of equal lines. The others are lost
		// only if one side removed them and the other left them.
		for l := range count(base + "\n" + yours + "\n" + theirs) {
			if max(had[l], a[l], b[l]) > 1 || a[l]+b[l] <= had[l] {
				continue
			}
			if have[l] == 0 {
				t.Fatalf("the line %q is lost in %q", l, got.Text)
			}
		}
	})
}

// count counts the lines of a text, without their endings.
func count(text string) map[string]int {
	out := map[string]int{}
	for l := range strings.Lines(text) {
		out[strings.TrimSuffix(l, "\n")]++
	}
	return out
}

// FuzzEndings checks that saving an unchanged file changes nothing.
func FuzzEndings(f *testing.F) {
	for _, s := range []string{"", "a", "a\r\nb\nc\r", "\ufeff\r\r\n\n", "\n\n", "\ufeff\ufeff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, file string) {
		if got := merge.Endings(file, strings.ReplaceAll(merge.Plain(file), "\n", "\r\n")); got != file {
			t.Fatalf("%q became %q", file, got)
		}
	})
}
