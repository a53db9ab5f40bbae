package space

import "strings"

// ConflictMark stands, in the name of a conflict copy, between the name of the
// file that it is a copy of and the commit that it conflicted with:
// name.conflict-<commit>.ext.
const ConflictMark = ".conflict-"

// IsConflictCopy reports whether a path was made to keep a change that met a
// newer head ([KeepBoth]): name.conflict-<commit>.ext, where the commit has its
// [CommitID.Short] form, or a file under a directory so named.
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
