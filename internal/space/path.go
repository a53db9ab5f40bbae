package space

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/internal/fault"
)

// Path is a valid path of a file in a space: relative and slash-separated. [ParsePath]
// returns it, so its users need not check it again.
type Path string

// Limits of every path. They apply to all writers, and fit every file system that a space
// may be checked out on (Linux allows 255 bytes per name).
const (
	MaxPathBytes    = 1024
	MaxSegmentBytes = 255
	MaxPathDepth    = 32
)

// PathRule is the rule that a refused path breaks, for tests and metrics.
type PathRule string

// The path rules.
const (
	RuleEmpty    PathRule = "empty"
	RuleAbsolute PathRule = "absolute"
	RuleSegment  PathRule = "segment" // empty, "." or ".."
	RuleUTF8     PathRule = "utf8"
	RuleControl  PathRule = "control" // NUL and control characters
	RuleGit      PathRule = "git"     // .git, in any form that a file system folds to it
	RuleLength   PathRule = "length"
	RuleDepth    PathRule = "depth"
	RuleSymlink  PathRule = "symlink" // a link whose target leaves the space
)

// PathError is a refused path. It is always the cause of a fault.Invalid.
type PathError struct {
	Path string // as given
	Rule PathRule
	Why  string // for people
}

func (e *PathError) Error() string { return fmt.Sprintf("path %s: %s", quoteShort(e.Path), e.Why) }

func refuse(p string, rule PathRule, why string) error {
	e := &PathError{Path: p, Rule: rule, Why: why}
	return fault.Wrap(e, fault.Invalid, "The path %s cannot be used: %s.", quoteShort(p), why)
}

// RuleOf returns the path rule in err, or "".
func RuleOf(err error) PathRule {
	var e *PathError
	if errors.As(err, &e) {
		return e.Rule
	}
	return ""
}

// ParsePath returns s as a Path if s may name a file in a space. It does not clean paths
// but refuses unclean ones, so that a file has only one name. The error is a fault.Invalid
// that wraps a [PathError].
func ParsePath(s string) (Path, error) {
	switch {
	case s == "":
		return "", refuse(s, RuleEmpty, "it is empty")
	case len(s) > MaxPathBytes:
		return "", refuse(s, RuleLength, fmt.Sprintf("it has %d bytes, and %d are allowed", len(s), MaxPathBytes))
	case !utf8.ValidString(s):
		return "", refuse(s, RuleUTF8, "it is not valid UTF-8")
	case s[0] == '/':
		return "", refuse(s, RuleAbsolute, "it must be relative to the space")
	}
	for _, r := range s {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return "", refuse(s, RuleControl, fmt.Sprintf("it has a control character (%U)", r))
		}
	}
	depth := 0
	for seg := range strings.SplitSeq(s, "/") {
		depth++
		switch {
		case seg == "":
			return "", refuse(s, RuleSegment, "a name in it is missing: it begins or ends with a slash, or has two slashes in a row")
		case seg == "." || seg == "..":
			return "", refuse(s, RuleSegment, fmt.Sprintf("it has the segment %q", seg))
		case len(seg) > MaxSegmentBytes:
			return "", refuse(s, RuleLength, fmt.Sprintf("a name in it has %d bytes, and %d are allowed", len(seg), MaxSegmentBytes))
		case FoldsToGit(seg):
			return "", refuse(s, RuleGit, fmt.Sprintf("the name %q belongs to git", seg))
		}
	}
	if depth > MaxPathDepth {
		return "", refuse(s, RuleDepth, fmt.Sprintf("it is %d levels deep, and %d are allowed", depth, MaxPathDepth))
	}
	return Path(s), nil
}

// FoldsToGit reports whether a file system or git may read the name as ".git". Such a name can
// have another case, trailing dots or spaces, or an alternate data stream (Windows, as in git's
// is_ntfs_dotgit). It can be the short name "git~1", or contain code points that HFS+ ignores (as
// in git's is_hfs_dotgit).
func FoldsToGit(name string) bool {
	s := FoldName(name)
	if i := strings.IndexAny(s, ":\\"); i >= 0 {
		// On NTFS, ".git::$INDEX_ALLOCATION" is the directory .git, and a backslash
		// separates names.
		for part := range strings.SplitSeq(s, "\\") {
			head, _, _ := strings.Cut(part, ":")
			if isGitName(head) {
				return true
			}
		}
		return false
	}
	return isGitName(s)
}

// FoldName returns a name as file systems that ignore case compare it, without the code
// points that HFS+ ignores.
func FoldName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if !ignoredByHFS(r) {
			b.WriteRune(r)
		}
	}
	return strings.ToLower(b.String())
}

func isGitName(s string) bool {
	s = strings.TrimRight(s, ". ")
	return s == ".git" || s == "git~1"
}

// ignoredByHFS reports whether HFS+ drops a code point from names (Apple Technical Note 1150;
// git's utf8.c next_hfs_char).
func ignoredByHFS(r rune) bool {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return true
	}
	return false
}

// HiddenPath reports whether the name of a file, or of a directory above it, begins with a dot.
// The path may be invalid.
func HiddenPath(p string) bool {
	for name := range strings.SplitSeq(p, "/") {
		if strings.HasPrefix(name, ".") && name != "." && name != ".." {
			return true
		}
	}
	return false
}

// CheckSymlink checks that a symbolic link at p with this target stays inside
// the space. The error is a fault.Invalid that wraps a [PathError].
func CheckSymlink(p Path, target string) error {
	bad := func(why string) error { return refuse(string(p), RuleSymlink, why) }
	switch {
	case target == "":
		return bad("its link target is empty")
	case len(target) > MaxPathBytes || !utf8.ValidString(target) || strings.ContainsFunc(target, unicode.IsControl):
		return bad("its link target is too long or has characters that are not allowed")
	case path.IsAbs(target):
		return bad("its link target is absolute")
	}
	// Check name by name: "a/../../b" leaves the space on the way, although the cleaned
	// path does not.
	depth := strings.Count(string(p), "/")
	for seg := range strings.SplitSeq(target, "/") {
		switch {
		case seg == "" || seg == ".":
		case seg == "..":
			if depth--; depth < 0 {
				return bad("its link target leaves the space")
			}
		case FoldsToGit(seg):
			return bad("its link target belongs to git")
		default:
			depth++
		}
	}
	return nil
}
