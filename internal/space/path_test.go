package space_test

import (
	"errors"
	"path"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// TestParsePath is the specification of paths: what passes unchanged, and
// which rule refuses the rest.
func TestParsePath(t *testing.T) {
	ok := []string{
		"a", "a.md", "knowledge/notes.md", ".bashrc", ".github/ISSUE_TEMPLATE.md", ".gitignore", ".gitattributes", ".gitmodules",
		"...", "a/...", "..a", "a..", " ", "a b/c d", "~", "-rf", "$(id)", "a:b", `back\slash`, "日本語/ファイル.md", "é", "e\u0301",
		"git", "git~2", "xgit~1", ".git2", ".gitx/config", "a.git", "con", "aux.md", "emoji😀", "rtl\u05d0",
		strings.Repeat("x", space.MaxSegmentBytes), strings.Repeat("d/", space.MaxPathDepth-1) + "f",
	}
	for _, p := range ok {
		if got, err := space.ParsePath(p); err != nil || string(got) != p {
			t.Errorf("%q: %q, %v", p, got, err)
		}
	}
	for rule, bad := range map[space.PathRule][]string{
		space.RuleEmpty:    {""},
		space.RuleAbsolute: {"/", "/etc/passwd", "//host/share"},
		space.RuleSegment:  {".", "..", "a/..", "../a", "a/../b", "a/./b", "./a", "a//b", "a/", "a/b/"},
		space.RuleUTF8:     {"\xff", "a/\xc3(", "\xed\xa0\x80"},
		space.RuleControl:  {"\x00", "a\x00b", "a\nb", "a\rb", "\x1b[31m", "\x7f", "a\u0085b", "a\u2028b", "a\u2029b"},
		space.RuleGit: {
			".git", ".GIT", ".Git/config", "a/.git", "a/.gIt/hooks/x", ".git.", ".git ", ".git. . ", "git~1", "GIT~1/x", "git~1.",
			".git::$INDEX_ALLOCATION", ".git:stream", "git~1:x", `.git\config`, `x\.git\config`, `x\git~1`, `a\.git:x\b`,
			".g\u200cit", "\u200d.git", ".git\ufeff", ".g\u202ai\u206at", "\u200e.\u200fG\u202eI\u206ft/config",
		},
		space.RuleLength: {strings.Repeat("x", space.MaxSegmentBytes+1), strings.Repeat("é", 128), strings.Repeat("x/", 600)},
		space.RuleDepth:  {strings.Repeat("d/", space.MaxPathDepth) + "f"},
	} {
		for _, p := range bad {
			got, err := space.ParsePath(p)
			if space.RuleOf(err) != rule || got != "" || fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%q: %q, %v; want the rule %s", p, got, err, rule)
			}
			var pe *space.PathError
			if !errors.As(err, &pe) || pe.Path != p || pe.Why == "" || len(pe.Error()) > 400 {
				t.Errorf("%q: %v", p, err)
			}
		}
	}
}

func TestCheckSymlink(t *testing.T) {
	for _, c := range []struct {
		path, target string
		ok           bool
	}{
		{"a", "b", true}, {"a", "./b", true}, {"d/a", "../b", true}, {"d/e/a", "../../b", true}, {"a", "d/../b", true},
		{"a", "a", true}, {"a", "d//b", true}, {"a", "..b", true}, {"a", "no such file", true}, {"d/a", "..", true}, {"a", ".", true},
		{"a", "", false}, {"a", "/etc/passwd", false}, {"a", "/", false}, {"a", "..", false}, {"a", "../x", false},
		{"d/a", "../../x", false}, {"d/a", "b/../../../x", false}, {"a", "d/../../space/x", false}, {"a", "../x/../a", false},
		{"a", ".git/config", false}, {"a", "x/.GIT", false}, {"d/a", "../git~1/config", false}, {"a", ".g\u200cit", false},
		{"a", "x\x00", false}, {"a", "x\n", false}, {"a", "\xff", false}, {"a", strings.Repeat("x/", 600), false},
	} {
		err := space.CheckSymlink(space.Path(c.path), c.target)
		if (err == nil) != c.ok {
			t.Errorf("%s → %q: %v", c.path, c.target, err)
		}
		if err != nil && (space.RuleOf(err) != space.RuleSymlink || fault.CodeOf(err) != fault.Invalid) {
			t.Errorf("%s → %q: %v is no fault of a symlink", c.path, c.target, err)
		}
	}
}

func TestConflictCopies(t *testing.T) {
	for p, want := range map[space.Path]bool{
		"a.conflict-0123456789.md": true, "d/a.conflict-0123456789": true, "a.conflict-0123456789-2.md": true,
		"d.conflict-0123456789/x.md": true, ".bashrc.conflict-abcdef0123": true, "a.conflict-of.conflict-0123456789.md": true,
		"a.conflict-0123456789abcdef0123456789abcdef01234567.md": true,
		"a.conflict-of-interest.md":                              false, "a.conflict-012345678.md": false, "a.conflict-012345678/9": false, "conflict-0123456789.md": false,
		"a.conflict-ABCDEF0123.md": false, "a.md": false, "": false,
	} {
		if space.IsConflictCopy(p) != want {
			t.Errorf("%q: %v", p, !want)
		}
	}
}

func TestIDs(t *testing.T) {
	id := space.NewSpaceID()
	if got, err := space.ParseSpaceID(string(id)); err != nil || got != id || id == space.NewSpaceID() {
		t.Errorf("%s %v", got, err)
	}
	for _, bad := range []string{"", "s_", "..", "s_../../../../../../../../../../", "S_" + string(id[2:]), string(id) + "a", string(id) + "\n",
		string(id[:len(id)-1]), "u_" + string(id[2:]), strings.ToUpper(string(id))} {
		if _, err := space.ParseSpaceID(bad); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q is taken for a space id", bad)
		}
	}
	full := strings.Repeat("0a", 20)
	for s, want := range map[string]bool{full: true, "": false, full[1:]: false, strings.ToUpper(full): false, full + "0": false, full[1:] + "g": false} {
		if space.CommitID(s).Valid() != want || space.BlobID(s).Valid() != want {
			t.Errorf("%q", s)
		}
	}
}

func TestScopes(t *testing.T) {
	for in, want := range map[string]int{"read": 1, "read,write": 2, "read write": 2, "write, read": 2, "read,read": 1} {
		if got, bad, ok := space.ParseScopes(in); !ok || len(got) != want || bad != "" {
			t.Errorf("%q: %v %q", in, got, bad)
		}
	}
	for in, wantBad := range map[string]string{"": "", " , ": "", "read,admin": "admin", "READ": "READ"} {
		if _, bad, ok := space.ParseScopes(in); ok || bad != wantBad {
			t.Errorf("%q: %q %v", in, bad, ok)
		}
	}
	g := space.Grant{Scopes: []space.Scope{space.ScopeWrite}}
	if g.Has(space.ScopeRead) || !g.Has(space.ScopeWrite) {
		t.Error("write includes read")
	}
}

// FuzzPath holds what a path that passes may be relied on for.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"a/b.md", "../x", ".git/config", ".g\u200cit", "a\x00", "/etc", "git~1", `x\.git`, ".git:x", "a//b", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := space.ParsePath(s)
		if err != nil {
			if space.RuleOf(err) == "" || fault.CodeOf(err) != fault.Invalid || !utf8.ValidString(fault.PublicOf(err)) {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		if string(p) != s || path.Clean(s) != s || path.IsAbs(s) || strings.HasPrefix(s, "..") && (s == ".." || strings.HasPrefix(s, "../")) {
			t.Fatalf("%q passed and is not clean", s)
		}
		if len(s) > space.MaxPathBytes || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			t.Fatalf("%q passed", s)
		}
		for seg := range strings.SplitSeq(s, "/") {
			if strings.EqualFold(seg, ".git") || strings.EqualFold(strings.TrimRight(seg, ". "), ".git") || len(seg) > space.MaxSegmentBytes {
				t.Fatalf("%q passed", s)
			}
		}
	})
}

// FuzzSymlink: a target that passes never leaves the space, however it is
// walked.
func FuzzSymlink(f *testing.F) {
	for _, s := range []string{"../x", "a/../../x", "..", "./..", "/x", ".git"} {
		f.Add("d/link", s)
	}
	f.Fuzz(func(t *testing.T, p, target string) {
		parsed, err := space.ParsePath(p)
		if err != nil || space.CheckSymlink(parsed, target) != nil {
			return
		}
		at := strings.Split(path.Dir("root/"+p), "/")
		for seg := range strings.SplitSeq(target, "/") {
			switch seg {
			case "", ".":
			case "..":
				at = at[:len(at)-1]
			default:
				at = append(at, seg)
			}
			if len(at) == 0 || at[0] != "root" {
				t.Fatalf("%q → %q leaves the space", p, target)
			}
		}
		if path.IsAbs(target) {
			t.Fatalf("%q → %q", p, target)
		}
	})
}
