package space

import "strings"

// ConflictMark is the text before the commit in the name of a conflict copy:
// name.conflict-<commit>.ext.
const ConflictMark = ".conflict-"

// IsConflictCopy reports whether a path is a conflict copy (see [KeepBoth]), or a file in a
// directory with such a name. The name is name.conflict-<commit>.ext, with the commit as
// [CommitID.Short] returns it.
func IsConflictCopy(p Path) bool {
	for seg := range strings.SplitSeq(string(p), "/") {
		for _, rest, ok := strings.Cut(seg, ConflictMark); ok; _, rest, ok = strings.Cut(rest, ConflictMark) {
			if len(rest) >= shortCommit && isHex(rest[:shortCommit]) {
				return true
			}
		}
	}
	return false
}
