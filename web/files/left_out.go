package files

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"satchel/internal/space"
)

// maxLeftOut is the maximum number of names in the list of omitted files.
const maxLeftOut = 1000

// leftOut lists the files that an archive omits.
type leftOut struct {
	lines []string
	more  int
}

func (l *leftOut) add(p space.Path, why string) {
	if len(l.lines) == maxLeftOut {
		l.more++
		return
	}
	name := string(p)
	// A name must fit on one line and show every character.
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.ContainsRune(name, unicode.ReplacementChar) {
		name = strconv.QuoteToASCII(name)
	}
	l.lines = append(l.lines, name+": "+why)
}

func (l *leftOut) text() []byte {
	var b strings.Builder
	b.WriteString("These files are in the space, but not in this archive. The reason follows each\nname. The download with the history (git bundle) has those that are not damaged.\n\n")
	for _, line := range l.lines {
		b.WriteString(line + "\n")
	}
	if l.more > 0 {
		fmt.Fprintf(&b, "and %d more\n", l.more)
	}
	return []byte(b.String())
}

// notInZip returns the reason to omit a file from archives, or "" if there is none. An
// imported history may have names that would be unpacked outside of the directory of the
// archive. On Windows, a backslash also separates directories.
func notInZip(p space.Path) string {
	if _, err := space.ParsePath(string(p)); err != nil {
		return whyOf(err)
	}
	if strings.Contains(string(p), `\`) {
		return "its name has a backslash, which leads into a directory on Windows"
	}
	return ""
}

// whyOf returns the reason why a path or a link is invalid.
func whyOf(err error) string {
	var e *space.PathError
	if errors.As(err, &e) {
		return e.Why
	}
	return "it cannot be unpacked safely"
}

// freeName returns a name for the list at the top of an archive. No file of the space has
// this name, even on a file system that ignores case.
func freeName(files []space.Entry) string {
	taken := map[string]bool{}
	for _, f := range files {
		first, _, _ := strings.Cut(string(f.Path), "/")
		taken[space.FoldName(first)] = true
	}
	for i := 1; ; i++ {
		name := "NOT-IN-THIS-ZIP.txt"
		if i > 1 {
			name = fmt.Sprintf("NOT-IN-THIS-ZIP-%d.txt", i)
		}
		if !taken[space.FoldName(name)] {
			return name
		}
	}
}
