package space

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// SyncState says how the last sync of a source ended.
type SyncState string

// The states of a sync. In every state the source shows the last complete sync.
const (
	SyncNew       SyncState = "new"       // there was no complete sync yet
	SyncReady     SyncState = "ready"     // the source has what upstream has
	SyncUnchanged SyncState = "unchanged" // of a run: upstream had no changes
	SyncFailed    SyncState = "failed"    // upstream did not answer, or the sync failed; it is tried again
	SyncLimited   SyncState = "limited"   // upstream asked to wait; it is tried again
	SyncGone      SyncState = "gone"      // upstream does not exist any more
	SyncRefused   SyncState = "refused"   // upstream refuses access, or the settings are wrong
	SyncStopped   SyncState = "stopped"   // the sync would remove most files; a person must confirm it
	SyncCanceled  SyncState = "canceled"  // a person canceled the sync
	SyncRunning   SyncState = "running"   // of a run that has not ended
	SyncEnded     SyncState = "ended"     // the source was unpublished, or the person who added it is gone
)

// SyncEvery is the default interval between syncs.
const SyncEvery = 6 * time.Hour

// SyncOrigin says where the settings of a synced source come from.
type SyncOrigin string

// The origins of settings.
const (
	OriginPerson SyncOrigin = ""     // a person or a command
	OriginFile   SyncOrigin = "file" // an entry of the configuration file
	OriginLeft   SyncOrigin = "left" // an entry that is no longer in the file; the source is synced on request only
)

// Sync describes how a source follows its upstream. The JSON is part of the command line's
// contract.
type Sync struct {
	Source   string          `json:"source"`
	Space    SpaceID         `json:"space"`
	Kind     SourceKind      `json:"kind"`
	Settings json.RawMessage `json:"settings"`
	// Manages reports whether the caller may change the source. Other callers get no settings.
	// Only the service sets Manages.
	Manages bool       `json:"manages,omitempty"`
	Origin  SyncOrigin `json:"origin,omitempty"`
	// Upstream is the address of the upstream, without a password.
	Upstream string `json:"upstream,omitempty"`
	// Every is the interval between syncs in seconds. 0 means only on request.
	Every int64 `json:"every"`
	// Paused stops the schedule. The source still syncs on request.
	Paused bool      `json:"paused,omitempty"`
	State  SyncState `json:"state"`
	// Problem says what is wrong and what to do.
	Problem string `json:"problem,omitempty"`
	// Version is the state of upstream that the source shows, such as a commit.
	Version string    `json:"version,omitempty"`
	Checked time.Time `json:"checked,omitzero"` // the last successful sync
	Next    time.Time `json:"next,omitzero"`
	// Running is the progress of the running sync.
	Running *SyncProgress `json:"running,omitempty"`
	// Runs are the last syncs, newest first. Syncs that found no changes are left out.
	Runs []SyncRun `json:"runs"`
}

// SyncProgress is the progress of a running sync.
type SyncProgress struct {
	Step  string `json:"step"` // check, fetch, commit or publish
	Done  int    `json:"done"` // files
	Total int    `json:"total"`
}

// Text describes the progress for people.
func (p SyncProgress) Text() string {
	files := func(n int) string {
		if n == 1 {
			return "1 file"
		}
		return strconv.Itoa(n) + " files"
	}
	switch {
	case p.Step == "":
		return "Waiting for other syncs"
	case p.Step == "check":
		return "Checking for changes"
	case p.Step == "commit":
		return "Saving the changes"
	case p.Step == "publish":
		return "Publishing the changes"
	case p.Total > 0:
		return "Reading files: " + strconv.Itoa(p.Done) + " of " + strconv.Itoa(p.Total)
	case p.Done > 0:
		return "Reading files: " + files(p.Done) + " so far"
	}
	return "Reading files"
}

// SyncCounts counts the files of a sync.
type SyncCounts struct {
	Files   int   `json:"files"`
	Bytes   int64 `json:"bytes"`
	Added   int   `json:"added"`
	Changed int   `json:"changed"`
	Deleted int   `json:"deleted"`
	Renamed int   `json:"renamed"`
	// Skipped counts the files that upstream has but that could not be fetched, by reason.
	Skipped map[string]int `json:"skipped,omitempty"`
}

// Text describes the changes, such as "3 added, 1 deleted". It returns "" if no file changed.
func (c SyncCounts) Text() string {
	var parts []string
	for _, p := range []struct {
		n    int
		word string
	}{{c.Added, "added"}, {c.Changed, "changed"}, {c.Renamed, "renamed"}, {c.Deleted, "deleted"}} {
		if p.n > 0 {
			parts = append(parts, strconv.Itoa(p.n)+" "+p.word)
		}
	}
	return strings.Join(parts, ", ")
}

// Differs reports whether the sync changed any file.
func (c SyncCounts) Differs() bool { return c.Added+c.Changed+c.Deleted+c.Renamed > 0 }

// SyncRun is one sync of a source.
type SyncRun struct {
	ID      string    `json:"id"`
	Source  string    `json:"source"`
	State   SyncState `json:"state"`
	Problem string    `json:"problem,omitempty"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	Version string    `json:"version,omitempty"`
	Commit  CommitID  `json:"commit,omitempty"`
	SyncCounts
}

// SyncPreview is what a sync would change, or what a new source would contain.
type SyncPreview struct {
	Kind     SourceKind      `json:"kind"`
	Settings json.RawMessage `json:"settings"`
	SyncCounts
	// More reports that upstream has more files than were fetched for the preview.
	More   bool     `json:"more"`
	Titles []string `json:"titles"` // the titles of the first files
	// Licence is the SPDX name of the licence that the files state, or the name of the licence's
	// file if the licence is not recognized. It is empty if there is no such file.
	Licence string `json:"licence,omitempty"`
	// ID and Title are a free ID and a title for a new source.
	ID    string `json:"id,omitempty"`
	Title string `json:"title,omitempty"`
	// Changes are the first files that a sync would change, sorted by path.
	Changes []SyncChange `json:"changes,omitempty"`
}

// SyncChange is a file that a sync would change.
type SyncChange struct {
	Path   Path       `json:"path"`
	Status FileStatus `json:"status"`
	From   Path       `json:"from,omitempty"` // the path before a rename
}

// SourceKindInfo describes a kind of source for people.
type SourceKindInfo struct {
	Kind     SourceKind    `json:"kind"`
	Title    string        `json:"title"` // such as "Web site"
	Settings []SyncSetting `json:"settings"`
}

// SyncSetting is a setting of a kind.
type SyncSetting struct {
	Name string          `json:"name"`
	Type SyncSettingType `json:"type"`
}

// SyncSettingType says how people enter a setting.
type SyncSettingType string

// The types of settings.
const (
	SettingText   SyncSettingType = "text"
	SettingList   SyncSettingType = "list" // of texts
	SettingNumber SyncSettingType = "number"
	SettingFlag   SyncSettingType = "flag"
	SettingOther  SyncSettingType = "other" // needs the command line or the REST API
)
