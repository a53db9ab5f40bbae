package gitstore

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// gitFile is a file that git reads its own settings from, wherever in a tree it
// lies. A server that checks what is pushed to it (receive.fsckObjects) looks
// into these, and one that it does not like, anywhere in the history, stops
// every later push (git's fsck.c).
type gitFile struct {
	name  string
	short string // how its short names on Windows begin: six characters of the name
	hash  string // likewise where those are taken (git's is_ntfs_dot_generic)
	check func(content []byte) string
}

var gitFiles = []gitFile{
	{".gitmodules", "gitmod", "gi7eba", checkModules},
	{".gitattributes", "gitatt", "gi7d29", checkAttributes},
	{".gitignore", "gitign", "gi250a", nil},
	{".mailmap", "mailma", "maba30", nil},
}

// checkGitFile refuses a file of git's own that a server would refuse.
func checkGitFile(p space.Path, mode space.Mode, content []byte) error {
	name := string(p[strings.LastIndexByte(string(p), '/')+1:])
	for _, f := range gitFiles {
		// A backslash separates names on Windows, and fsck looks after each.
		if !slices.ContainsFunc(strings.Split(name, "\\"), f.is) {
			continue
		}
		why := ""
		switch {
		case mode == space.Symlink:
			why = "it is a link"
		case f.check != nil:
			why = f.check(content)
		}
		if why != "" {
			return fault.New(fault.Invalid, "The file %q is one that git reads its settings from, and %s: a git server would refuse every push with it.", string(p), why)
		}
	}
	return nil
}

// is reports whether a file system or git may take a name for the file's.
func (f gitFile) is(name string) bool {
	s, _, _ := strings.Cut(space.FoldName(name), ":")
	s = strings.TrimRight(s, ". ")
	if s == f.name {
		return true
	}
	if rest, ok := strings.CutPrefix(s, f.short+"~"); ok && len(rest) == 1 && rest[0] >= '1' && rest[0] <= '4' {
		return true
	}
	at, digits, ok := strings.Cut(s, "~")
	return ok && len(s) == 8 && strings.HasPrefix(f.hash, at) && digits[0] != '0' && strings.Trim(digits, "0123456789") == ""
}

// maxAttributesLine is git's ATTR_MAX_LINE_LENGTH.
const maxAttributesLine = 2048

func checkAttributes(content []byte) string {
	for line := range bytes.Lines(content) {
		if len(line) >= maxAttributesLine {
			return "it has a line of 2,048 bytes or more"
		}
	}
	return ""
}

// What a .gitmodules may hold: less than git reads, and nothing that it could
// read in two ways. Made when first asked for: the program is also every
// sandbox's processes.
var (
	moduleSection = lazily(`^\[submodule "([A-Za-z0-9_+@ ./-]+)"\]$`)
	moduleValue   = lazily(`^([A-Za-z]+)\s*=\s*([^\s"'\\;#][^"'\\;#]*)$`)
	moduleURL     = lazily(`^((https?|ssh|git)://([A-Za-z0-9_.-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[A-Za-z0-9._~+@-]+)+/?|` +
		`[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9_][A-Za-z0-9._~/+-]*|(\.?\./)+[A-Za-z0-9_][A-Za-z0-9._~/+-]*)$`)
)

func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

func checkModules(content []byte) string {
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if m := moduleSection().FindStringSubmatch(line); m != nil {
			if strings.Contains("/"+m[1]+"/", "/../") {
				return "the name of a submodule in it leads out of its directory"
			}
			continue
		}
		m := moduleValue().FindStringSubmatch(line)
		if m == nil {
			return "it has a line that is not plain enough to be safe"
		}
		switch strings.ToLower(m[1]) {
		case "path":
			if m[2][0] == '-' {
				return "the path of a submodule in it looks like an option"
			}
		case "url":
			if !moduleURL().MatchString(m[2]) {
				return "the URL of a submodule in it is not plain enough to be safe"
			}
		case "update":
			if strings.Trim(m[2], "abcdefghijklmnopqrstuvwxyz") != "" {
				return "a submodule in it runs a command"
			}
		case "branch", "ignore", "shallow", "fetchrecursesubmodules":
		default:
			return "it has a setting that submodules do not have"
		}
	}
	return ""
}
