package gitstore

import (
	"path"
	"strconv"
	"strings"

	"satchel/internal/space"
)

// conflictName returns the n-th name (from 1) to keep a change under whose path
// is taken by head. component is the path, or the ancestor of it, that is in
// the way; rest is what follows it, with its slash. Where the name has no
// room beside the other, it is at the top of the space.
func conflictName(component, rest string, head space.CommitID, n int) (space.Path, bool) {
	dir, name := path.Split(component)
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if stem == "" || len(ext) > 32 { // ".bashrc" has no extension
		stem, ext = name, ""
	}
	mark := space.ConflictMark + head.Short()
	if n > 1 {
		mark += "-" + strconv.Itoa(n)
	}
	for _, d := range []string{dir, ""} {
		room := min(space.MaxSegmentBytes, space.MaxPathBytes-len(d)-len(rest)) - len(mark) - len(ext)
		if room < 1 {
			continue
		}
		if p, err := space.ParsePath(d + cut(stem, room) + mark + ext + rest); err == nil {
			return p, true
		}
	}
	return "", false
}
