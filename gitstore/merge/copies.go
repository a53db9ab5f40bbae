package merge

import (
	"path"
	"strconv"
	"strings"

	"satchel/gitstore/commits"
	"satchel/internal/space"
)

// ConflictName returns the n-th name, counted from 1, for a copy of a file whose path is taken by
// an entry of the commit head. component is the path, or its ancestor, that is in the way. rest is
// the part of the path below component, with its slash. A name that is too long for the directory
// of component is at the top of the space. The result is false if no name is valid.
func ConflictName(component, rest string, head space.CommitID, n int) (space.Path, bool) {
	dir, name := path.Split(component)
	stem, ext := CopyStem(name)
	mark := space.ConflictMark + head.Short()
	if n > 1 {
		mark += "-" + strconv.Itoa(n)
	}
	for _, d := range []string{dir, ""} {
		room := min(space.MaxSegmentBytes, space.MaxPathBytes-len(d)-len(rest)) - len(mark) - len(ext)
		if room < 1 {
			continue
		}
		if p, err := space.ParsePath(d + commits.Cut(stem, room) + mark + ext + rest); err == nil {
			return p, true
		}
	}
	return "", false
}

// CopyStem splits a name at the place where its conflict copies have the mark (see
// [ConflictName]).
func CopyStem(name string) (stem, ext string) {
	ext = path.Ext(name)
	stem = strings.TrimSuffix(name, ext)
	if stem == "" || len(ext) > 32 { // ".bashrc" has no extension
		return name, ""
	}
	return stem, ext
}
