package library

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/internal/space"
	"satchel/web"
)

// stateView is a state in words. Tone chooses the color and the icon: good, busy, wait, bad or off.
type stateView struct{ Word, Tone string }

// stateOfSync describes the state of a source that follows an upstream.
func stateOfSync(st space.Sync) stateView {
	switch {
	case st.Running != nil:
		return stateView{"Updating", "busy"}
	case st.Paused && st.Problem == "":
		return stateView{"Paused", "off"}
	}
	return stateWord(st.State)
}

func stateWord(s space.SyncState) stateView {
	switch s {
	case space.SyncNew:
		return stateView{"Waiting for its first update", "wait"}
	case space.SyncReady, space.SyncUnchanged:
		return stateView{"Up to date", "good"}
	case space.SyncLimited:
		return stateView{"Its server asked Satchel to wait", "wait"}
	case space.SyncGone:
		return stateView{"Not found at its address", "bad"}
	case space.SyncRefused:
		return stateView{"Cannot be read", "bad"}
	case space.SyncStopped:
		return stateView{"Needs your confirmation", "wait"}
	case space.SyncCanceled:
		return stateView{"Last update canceled", "off"}
	case space.SyncRunning:
		return stateView{"Updating", "busy"}
	case space.SyncEnded:
		return stateView{"Ended", "off"}
	}
	return stateView{"Last update failed", "bad"}
}

// stateOfSource describes the state of a directory that somebody published.
func stateOfSource(s space.Source) stateView {
	switch s.State {
	case space.SourceFailed:
		return stateView{"Needs attention", "bad"}
	case space.SourceWaiting:
		return stateView{"Updating", "busy"}
	}
	return stateView{"Up to date", "good"}
}

// advice says what a person who manages a source can do about its state.
func advice(s space.SyncState) string {
	switch s {
	case space.SyncFailed, space.SyncLimited:
		return "Satchel tries again automatically. Until then, readers see the last complete version."
	case space.SyncGone:
		return "Correct the address under Change, or remove the source. Meanwhile, readers see the last complete version."
	case space.SyncRefused:
		return "Correct the settings under Change, or give Satchel access there. Meanwhile, readers see the last complete version."
	case space.SyncStopped:
		return "Preview the update to see which files would go. Readers see the last complete version until then."
	}
	return ""
}

// syncKey returns a key that changes when the page of a source must be loaded again. Progress
// does not change the key.
func syncKey(st space.Sync) string {
	h := fnv.New64a()
	fmt.Fprint(h, st.State, st.Running != nil, st.Problem, st.Version, st.Every, st.Paused, st.Checked.Unix())
	return strconv.FormatUint(h.Sum64(), 16)
}

// skippedRow is a reason why files were left out, with the number of these files.
type skippedRow struct {
	Count int
	Words string
}

func skippedRows(by map[string]int) []skippedRow {
	var out []skippedRow
	for reason, n := range by {
		out = append(out, skippedRow{n, reasonWords(reason)})
	}
	slices.SortFunc(out, func(a, b skippedRow) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Words, b.Words))
	})
	return out
}

// reasonWords returns the words for a reason. For an unknown reason, it returns the reason.
func reasonWords(reason string) string {
	switch reason {
	case "lfs":
		return "the content is in Git LFS"
	case "bad_name":
		return "the name cannot be used"
	case "duplicate":
		return "another file has the same name"
	case "too_slow":
		return "the conversion takes too long or too much memory"
	case "needs_sandbox":
		return "no sandbox can start on the server"
	case "needs_pandoc", "needs_poppler-utils":
		return "the server needs the package " + strings.TrimPrefix(reason, "needs_")
	case "no_captions":
		return "the video has no captions"
	case "blocked":
		return "its server does not let Satchel read the file"
	case "rate_limited":
		return "its server asked Satchel to try later"
	case "too_large":
		return "the file is over the size limit"
	case "unreadable":
		return "the file is not in a format that can be read"
	case "missing":
		return "a link leads to a file that does not exist"
	case "disallowed":
		return "the site’s robots.txt disallows the page"
	case "failed":
		return "its server answered with an error"
	case "too_many":
		return "the source would have more files than its settings allow"
	case "refused":
		return "the file looks like it contains a key or a password"
	}
	return strings.ReplaceAll(web.Shorten(reason, 60), "_", " ")
}

// changesText says what an update changed.
func changesText(c space.SyncCounts) string { return cmp.Or(c.Text(), "No file changed") }

// shortVersion returns the beginning of a commit's ID, or at most 24 characters of any other
// version.
func shortVersion(v string) string {
	if space.CommitID(v).Valid() {
		return space.CommitID(v).Short()
	}
	return web.Shorten(v, 24)
}

// everyWords says how often a source is updated.
func everyWords(seconds int64) string {
	if seconds == 0 {
		return "On request only"
	}
	d := time.Duration(seconds) * time.Second
	switch d {
	case time.Hour:
		return "Every hour"
	case 24 * time.Hour:
		return "Every day"
	case 7 * 24 * time.Hour:
		return "Every week"
	}
	return "Every " + web.Span(d)
}
