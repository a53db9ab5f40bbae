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

// stateView is a state in words. Tone chooses the color and the icon: good, busy, wait, bad, over or off.
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

// advice says what a person who manages a source can do about its problem.
func advice(st space.Sync) string {
	switch st.State {
	case space.SyncFailed, space.SyncLimited:
		if st.Next.IsZero() {
			return "Readers still see the last complete version."
		}
		return "Satchel tries again automatically. Readers still see the last complete version."
	case space.SyncGone:
		return "Change the address, or remove the source. Readers still see the last complete version."
	case space.SyncRefused:
		return "Change the settings, or give Satchel access there. Readers still see the last complete version."
	case space.SyncStopped:
		return "Remove them here, too? Readers still see all files until you confirm."
	}
	return ""
}

// fixOf names what a person who manages a source does first about its state: change the "address" or
// the "settings", "confirm" a removal, or "resume" the updates. It returns "" if there is nothing to do.
func fixOf(st space.Sync) string {
	switch {
	case st.Running != nil || st.Kind == space.SourceUpload:
	case st.Problem == "" && st.Paused:
		return "resume"
	case st.State == space.SyncGone:
		return "address"
	case st.State == space.SyncRefused:
		return "settings"
	case st.State == space.SyncStopped:
		return "confirm"
	}
	return ""
}

// problemWords says what is wrong with a source. An update that a person must confirm says how many
// files would go, if the source lists its updates.
func problemWords(st space.Sync) string {
	switch {
	case st.Problem == "" || st.State != space.SyncStopped:
		return st.Problem
	case len(st.Runs) > 0 && st.Runs[0].State == space.SyncStopped:
		return missingText(st.Runs[0].SyncCounts)
	}
	return "More than half of the files are no longer at the address."
}

// missingText says how many files an upstream no longer has.
func missingText(c space.SyncCounts) string {
	before := c.Files - c.Added + c.Deleted
	if c.Deleted == before {
		return "None of the files is at the address any more."
	}
	return fmt.Sprintf("%d of the %d files are no longer at the address.", c.Deleted, before)
}

// stepText says what a running update does.
func stepText(p *space.SyncProgress) string {
	switch {
	case p == nil:
		return ""
	case p.Step == "":
		return "Waiting for other updates"
	}
	return p.Text()
}

// counted is a number of files that an update adds, changes, renames or removes.
type counted struct {
	n       int
	do, did string
}

// countsOf returns the texts for the numbers that are not 0. Only the first one says "files".
func countsOf(c space.SyncCounts, text func(x counted, n string) string) (parts []string) {
	for _, x := range []counted{{c.Added, "add", "added"}, {c.Changed, "change", "changed"}, {c.Renamed, "rename", "renamed"}, {c.Deleted, "remove", "deleted"}} {
		switch {
		case x.n == 0:
		case len(parts) == 0:
			parts = append(parts, text(x, web.Plural(x.n, "1 file", "%d files")))
		default:
			parts = append(parts, text(x, strconv.Itoa(x.n)))
		}
	}
	return parts
}

// wouldText says what an update would change.
func wouldText(c space.SyncCounts) string {
	parts := countsOf(c, func(x counted, n string) string { return x.do + " " + n })
	switch last := len(parts) - 1; last {
	case -1:
		return "This update would change no file."
	case 0:
		return "This update would " + parts[0] + "."
	default:
		return "This update would " + strings.Join(parts[:last], ", ") + " and " + parts[last] + "."
	}
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
func changesText(c space.SyncCounts) string {
	parts := countsOf(c, func(x counted, n string) string { return n + " " + x.did })
	return cmp.Or(strings.Join(parts, ", "), "No file changed")
}

// scheduleWords says when a source is updated.
func scheduleWords(st space.Sync) string {
	every := everyWords(st.Every)
	if !st.Paused || st.Every == 0 {
		return every
	}
	return "Paused; " + strings.ToLower(every[:1]) + every[1:] + " before"
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
