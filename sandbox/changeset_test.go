package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// seedOf is the Checkouts of one tree: path to content.
type seedOf map[space.Path]string

func (s seedOf) Blob(_ context.Context, _ space.SpaceID, _ space.CommitID, p space.Path) (space.BlobID, space.Mode, bool, error) {
	c, ok := s[p]
	return blobOf([]byte(c)), space.Regular, ok, nil
}

func (s seedOf) Files(_ context.Context, _ space.SpaceID, _ space.CommitID, under space.Path) (list []space.Entry, err error) {
	for p, c := range s {
		if under == "" || p == under || strings.HasPrefix(string(p), string(under)+"/") {
			list = append(list, space.Entry{Path: p, Blob: blobOf([]byte(c))})
		}
	}
	return list, nil
}

func (seedOf) Checkout(context.Context, space.SpaceID) (*space.Checkout, error) {
	panic("not asked for")
}
func (seedOf) Head(context.Context, space.SpaceID) (space.CommitID, error) { panic("not asked for") }
func (seedOf) ReadBlob(context.Context, space.SpaceID, space.BlobID) ([]byte, error) {
	panic("not asked for")
}
func (seedOf) Diff(context.Context, space.SpaceID, space.CommitID, space.CommitID) ([]space.FileChange, error) {
	panic("not asked for")
}

var testLimits = protocol.CollectLimits{Entries: 1000, FileSize: 100, Total: 10_000}

func write(p, content string) protocol.Entry {
	return protocol.Entry{Path: p, Content: []byte(content)}
}

// TestMakeDraft shows the draft for each report of an agent. The seed has "f", "d/a", "d/b"
// and "d/e/c"; "d/a" was committed since, "d/n" applied since, and "d/b" deleted.
func TestMakeDraft(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries []protocol.Entry
		want    []string // "+path" for a write, "-path" for a delete, "!path" refused, "?path" busy
	}{
		{"nothing", nil, nil},
		{"new file", []protocol.Entry{write("new", "x")}, []string{"+new"}},
		{"changed file", []protocol.Entry{write("f", "x")}, []string{"+f"}},
		{"written as it was", []protocol.Entry{write("f", "seed f"), write("d/a", "committed")}, nil},
		{"written back to the seed's", []protocol.Entry{write("d/a", "seed a")}, []string{"+d/a"}},
		{"mode alone", []protocol.Entry{{Path: "f", Mode: space.Executable, Content: []byte("seed f")}}, []string{"+f"}},
		{"deleted", []protocol.Entry{{Path: "f", Deleted: true}}, []string{"-f"}},
		{"deleted before", []protocol.Entry{{Path: "d/b", Deleted: true}, {Path: "never", Deleted: true}}, nil},
		{"directory deleted", []protocol.Entry{{Path: "d", Deleted: true}}, []string{"-d/a", "-d/e/c", "-d/n"}},
		{"directory deleted and its files too", []protocol.Entry{{Path: "d", Deleted: true}, {Path: "d/n", Deleted: true}}, []string{"-d/a", "-d/e/c", "-d/n"}},
		{"opaque directory hides the seed's files alone", []protocol.Entry{{Path: "d", Dir: true, Opaque: true}}, []string{"-d/e/c"}},
		{"opaque directory with new files", []protocol.Entry{{Path: "d", Dir: true, Opaque: true}, {Path: "d/a", Deleted: true}, {Path: "d/n", Deleted: true},
			{Path: "d/e", Dir: true}, write("d/e/c", "again")}, []string{"+d/e/c", "-d/a", "-d/n"}},
		{"opaque directory over a busy file keeps it", []protocol.Entry{{Path: "d", Dir: true, Opaque: true}, {Path: "d/e/c", Busy: true}}, []string{"?d/e/c"}},
		{"plain directory", []protocol.Entry{{Path: "d", Dir: true}, {Path: "empty", Dir: true}}, nil},
		{"file becomes directory", []protocol.Entry{{Path: "f", Dir: true, Opaque: true}, write("f/x", "x")}, []string{"+f/x", "-f"}},
		{"file becomes directory, reported only by its content", []protocol.Entry{write("f/x/y", "x")}, []string{"+f/x/y", "-f"}},
		{"directory becomes file", []protocol.Entry{write("d", "x")}, []string{"+d", "-d/a", "-d/e/c", "-d/n"}},
		{"case-only rename", []protocol.Entry{{Path: "f", Deleted: true}, write("F", "seed f")}, []string{"+F", "-f"}},
		{"busy", []protocol.Entry{{Path: "f", Busy: true}}, []string{"?f"}},

		{"attack: path leaves the space", []protocol.Entry{write("../x", ""), write("/etc/passwd", ""), write("a/../../x", ""), write("a//b", ""), write("", "")},
			[]string{"!", "!../x", "!/etc/passwd", "!a/../../x", "!a//b"}},
		{"attack: link leaves the space", []protocol.Entry{{Path: "l", Mode: space.Symlink, Content: []byte("/etc/passwd")}, {Path: "d/l", Mode: space.Symlink, Content: []byte("../../x")}},
			[]string{"!d/l", "!l"}},
		{"attack: git's own files", []protocol.Entry{write(".git/config", ""), write("x/.GIT/config", ""), write("x/.GIT/hooks/y", ""), write("git~1", ""), write("y/.gi\u200ct", "")},
			[]string{"!.git", "!git~1", "!x/.GIT", "!y/.gi\u200ct"}},
		{"attack: names that are not UTF-8 or have control characters", []protocol.Entry{write("a\xff", ""), write("a\nb", ""), write("\x1b[2J", "")}, []string{"!\x1b[2J", "!a\nb", "!a\xff"}},
		{"attack: delete of what cannot be named", []protocol.Entry{{Path: "../x", Deleted: true}, {Path: "/", Deleted: true}, {Path: ".git", Deleted: true}, {Path: "", Dir: true, Opaque: true}}, nil},
		{"attack: unknown mode", []protocol.Entry{{Path: "x", Mode: 7}}, []string{"!x"}},
		{"too deep to look into", []protocol.Entry{{Path: "x", Dir: true, Problem: "what is in it lies too deep"}}, []string{"!x"}},
		{"unreadable", []protocol.Entry{{Path: "f", Problem: "it is a FIFO"}}, []string{"!f"}},
		{"the same twice", []protocol.Entry{write("x", "1"), write("x", "2")}, []string{"+x"}},
	} {
		for _, loaded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, loaded %v", c.name, loaded), func(t *testing.T) {
				seed := seedOf{"f": "seed f", "d/a": "seed a", "d/b": "seed b", "d/e/c": "seed c"}
				v := &view{seeder: seed, over: map[space.Path]file{}}
				v.set("d/a", file{blobOf([]byte("committed")), space.Regular})
				v.set("d/n", file{blobOf([]byte("applied")), space.Regular})
				v.set("d/b", file{})
				b := protocol.Batch{Entries: slices.Clone(c.entries)}
				for i := range loadAbove {
					if loaded { // so many unchanged paths that the whole seed is listed
						b.Entries = append(b.Entries, protocol.Entry{Path: fmt.Sprintf("gone%d", i), Deleted: true})
					}
				}
				d, err := makeDraft(t.Context(), v, b, testLimits, testLimits.FileSize)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, ch := range d.changeSet().Changes {
					base, err := v.get(t.Context(), space.Path(ch.Path))
					if err != nil || ch.Base != base.blob || ch.BaseMode != base.mode {
						t.Errorf("%s has base %q, want %q (%v)", ch.Path, ch.Base, base.blob, err)
					}
					got = append(got, map[space.Op]string{space.Write: "+", space.Delete: "-"}[ch.Op]+ch.Path)
				}
				for _, r := range d.refused {
					if r.Why == "" || r.Err == nil {
						t.Errorf("%q is refused without a reason", r.Path)
					}
					got = append(got, "!"+r.Path)
				}
				for _, p := range d.busy {
					got = append(got, "?"+p)
				}
				slices.Sort(got)
				slices.Sort(c.want)
				if !slices.Equal(got, c.want) {
					t.Errorf("%q, want %q", got, c.want)
				}
			})
		}
	}
}

// TestReasonsStandBesideThePath: they do not name it again, and say the limit
// for saving, which is not the one for keeping.
func TestReasonsStandBesideThePath(t *testing.T) {
	limits := protocol.CollectLimits{Entries: 10, FileSize: 32 << 20, Total: 100 << 20}
	large := write("large", "")
	large.Content = make([]byte, 10<<20+1)
	d, err := makeDraft(t.Context(), &view{seeder: seedOf{}}, protocol.Batch{Entries: []protocol.Entry{
		large,
		{Path: "larger", Size: 40 << 20, Problem: "it has 41943040 bytes, and 33554432 are allowed"},
		{Path: "pipe", Problem: "it is neither a file nor a link"},
		write("con\ntrol", ""), write("x/.git/a", ""), write("x/.git/b", ""),
		{Path: "lnk", Mode: space.Symlink, Content: []byte("/etc/passwd")},
	}}, limits, 10<<20)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range d.refused {
		got[r.Path] = r.Why
	}
	for p, want := range map[string]string{
		"large":     "It was not saved: it has 10.1 MB, and a file may have 10 MB.",
		"larger":    "It was not saved: it has 40 MB, and a file may have 10 MB.",
		"pipe":      "It was not saved: it is neither a file nor a link.",
		"con\ntrol": "It was not saved: it has a control character (U+000A).",
		"x/.git":    "2 files under it cannot be saved: the name belongs to git.",
	} {
		if got[p] != want {
			t.Errorf("%q: %q, want %q", p, got[p], want)
		}
	}
	if !strings.HasPrefix(got["lnk"], "It was not saved: ") || strings.Contains(got["lnk"], `"lnk"`) {
		t.Errorf("%q", got["lnk"])
	}
	for _, h := range d.pending {
		if h.Path == "larger" && h.Lost != "it has 40 MB, and a file may have 10 MB" {
			t.Errorf("lost as %q", h.Lost)
		}
		if strings.Contains(h.Why, h.Path) {
			t.Errorf("%q is held as %q", h.Path, h.Why)
		}
	}
}

// TestMakeDraftOfTooMuch is the attack of an agent that sends more than it was
// asked for.
func TestMakeDraftOfTooMuch(t *testing.T) {
	for name, b := range map[string]protocol.Batch{
		"entries": {Entries: make([]protocol.Entry, testLimits.Entries+1)},
		"file":    {Entries: []protocol.Entry{write("x", strings.Repeat("x", int(testLimits.FileSize)+1))}},
		"total":   {Entries: slices.Repeat([]protocol.Entry{write("x", strings.Repeat("x", int(testLimits.FileSize)))}, int(testLimits.Total/testLimits.FileSize)+1)},
	} {
		_, err := makeDraft(t.Context(), &view{seeder: seedOf{}}, b, testLimits, testLimits.FileSize)
		if !errors.Is(err, protocol.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzMakeDraft checks that no bytes of an agent become a change that a
// Committer should not see: a bad path, a link out of the space, one path as
// file and directory.
func FuzzMakeDraft(f *testing.F) {
	f.Add("f", "x", byte(0), "d", "", byte(8), "d/a", "y", byte(16))
	f.Add("f/x", "", byte(1), "f", "", byte(24), "l", "../../x", byte(2))
	f.Add("d", "file", byte(0), "d/a", "z", byte(0), ".git/x", "", byte(0))
	f.Fuzz(func(t *testing.T, p1, c1 string, k1 byte, p2, c2 string, k2 byte, p3, c3 string, k3 byte) {
		entry := func(p, c string, k byte) protocol.Entry {
			e := protocol.Entry{Path: p, Mode: space.Mode(k & 3), Dir: k&8 != 0, Opaque: k&16 != 0, Deleted: k&32 != 0, Busy: k&64 != 0}
			if len(c) <= int(testLimits.FileSize) {
				e.Content = []byte(c)
			}
			return e
		}
		v := &view{seeder: seedOf{"f": "1", "d/a": "2", "d/b/c": "3"}, over: map[space.Path]file{}}
		d, err := makeDraft(t.Context(), v, protocol.Batch{Entries: []protocol.Entry{entry(p1, c1, k1), entry(p2, c2, k2), entry(p3, c3, k3)}}, testLimits, testLimits.FileSize)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, c := range d.changeSet().Changes {
			p, err := space.ParsePath(c.Path)
			if err != nil {
				t.Errorf("%q: %v", c.Path, err)
			}
			if c.Op == space.Write && c.Mode == space.Symlink {
				if err := space.CheckSymlink(p, string(c.Content)); err != nil {
					t.Error(err)
				}
			}
			if c.Op == space.Delete && c.Base == "" {
				t.Errorf("%q is deleted from nothing", c.Path)
			}
			if seen[c.Path] {
				t.Errorf("%q twice", c.Path)
			}
			seen[c.Path] = true
		}
	})
}
