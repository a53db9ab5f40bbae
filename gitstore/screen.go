package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"satchel/gitstore/packfile"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Warned is an error of Options.Screen that allows a file to be committed and adds a
// warning to Commit.Warnings.
type Warned struct{ Why string }

func (w Warned) Error() string { return w.Why }

// screen calls Options.Screen for a file's content. It allows content that the repository
// already has, so that files may be moved and restored. A remote either has that content
// too, or refuses it whatever this change does. A fault.Error refuses the file. Any other
// error ends the whole change.
func (r *repo) screen(ctx context.Context, q request, content []byte) (warning string, err error) {
	if r.s.o.Screen == nil || q.delete || r.db.Has(q.hash) {
		return "", nil
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	err = r.s.o.Screen(ctx, r.id, q.path, content, func() ([]byte, error) {
		at, err := r.trees().Lookup(r.head.Load().tree, string(q.path))
		if err != nil || !at.HasFile() {
			return nil, err
		}
		b, err := r.db.Blob(at.Hash)
		if packfile.Unreadable(err) {
			return nil, nil // the whole content counts as new
		}
		return b, err
	})
	return judged(ctx, err)
}

// screenMessage calls Options.Screen for a commit's message, which is pushed like any
// file.
func (r *repo) screenMessage(ctx context.Context, msg string) (warning string, err error) {
	if r.s.o.Screen == nil || msg == "" {
		return "", nil
	}
	return judged(ctx, r.s.o.Screen(ctx, r.id, space.CommentPath, []byte(msg), nothing))
}

func nothing() ([]byte, error) { return nil, nil }

// judged separates a warning of Options.Screen from other errors.
func judged(ctx context.Context, err error) (warning string, _ error) {
	if err != nil && ctx.Err() != nil {
		return "", ctx.Err() // ctx has ended, so the error of Screen says nothing about the file
	}
	var w Warned
	if errors.As(err, &w) {
		return w.Why, nil
	}
	return "", err
}

// screenHistory calls Options.Screen for everything in an imported history. A refusal
// refuses the whole history, because no part of it can be left out.
func (r *repo) screenHistory(ctx context.Context, from *quarantine, progress func(string)) (warnings []space.Warning, err error) {
	if r.s.o.Screen == nil {
		return nil, nil
	}
	progress("Looking for secrets in the history")
	err = from.r.walkBlobs(ctx, from.head, "", func(at space.CommitID, p space.Path, content []byte) error {
		asked, shown := p, fmt.Sprintf("%s at %s", p, at.Short())
		if p == "" {
			asked, shown = space.CommentPath, fmt.Sprintf("%s of %s", space.CommentPath, at.Short())
		}
		warning, err := judged(ctx, r.s.o.Screen(ctx, r.id, asked, content, nothing))
		if isFault(err) {
			return fault.Wrap(err, fault.CodeOf(err), "The history cannot be imported, because all of it would be pushed. Commit %s: %s", at.Short(), fault.PublicOf(err))
		}
		if warning != "" && len(warnings) < maxImportNotes {
			warnings = append(warnings, space.Warning{Path: shown, Why: warning})
		}
		return err
	})
	return warnings, err
}

func isFault(err error) bool {
	var f *fault.Error
	return errors.As(err, &f)
}

// gitFile is a file from which git reads its own settings, wherever it is in a tree. A
// server that checks pushes (receive.fsckObjects) looks into these files. If it refuses
// one, anywhere in the history, every later push fails (git's fsck.c).
type gitFile struct {
	name  string
	short string // start of its short names on Windows: six characters of the name
	hash  string // start of its short names if those are taken (git's is_ntfs_dot_generic)
	check func(content []byte) string
}

var gitFiles = []gitFile{
	{".gitmodules", "gitmod", "gi7eba", checkModules},
	{".gitattributes", "gitatt", "gi7d29", checkAttributes},
	{".gitignore", "gitign", "gi250a", nil},
	{".mailmap", "mailma", "maba30", nil},
}

// checkGitFile refuses a settings file of git that a server would refuse.
func checkGitFile(p space.Path, mode space.Mode, content []byte) error {
	name := string(p[strings.LastIndexByte(string(p), '/')+1:])
	for _, f := range gitFiles {
		// A backslash separates names on Windows, and fsck checks each of these names.
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
			return fault.New(fault.Invalid, "Git reads settings from the file %q, and %s: a git server would refuse every push with it.", string(p), why)
		}
	}
	return nil
}

// is reports whether a file system or git may take name for the file's name.
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

// Apart from comments and empty lines, a .gitmodules file may have only lines of these forms.
// They are a subset of what git reads, without anything ambiguous. The expressions are compiled
// on first use, because every process of a sandbox runs this program too.
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
