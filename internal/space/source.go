package space

import (
	"strings"
	"time"
)

// SourceKind says where the files of a source come from.
type SourceKind string

// SourceSpace is the kind of a directory that the owner of its space published. A source of
// every other kind has an upstream. A sync commits the upstream's files to a space that belongs
// to the source.
const SourceSpace SourceKind = "space"

// SourceUpload is the kind of sources whose files people upload.
const SourceUpload SourceKind = "upload"

// SourceYouTube is the kind of sources that follow a channel or playlist. People can upload
// transcripts of its videos.
const SourceYouTube SourceKind = "youtube"

// TakesUploads reports whether people can upload files to sources of the kind.
func (k SourceKind) TakesUploads() bool { return k == SourceUpload || k == SourceYouTube }

// FromWeb reports whether Satchel makes the pages of the kind from pages of the web. Then it writes
// the address of each page into the page's front matter, as url.
func (k SourceKind) FromWeb() bool {
	return k == "web" || k == "feed" || k == "openapi" || k == SourceYouTube
}

// SourceState says whether a source is up to date.
type SourceState string

// The states of a source.
const (
	SourceReady   SourceState = "ready"   // the snapshot shows the newest commit
	SourceWaiting SourceState = "waiting" // the first or a newer snapshot is about to be made
	SourceFailed  SourceState = "failed"  // the last sync failed; the last snapshot stays
)

// SourcesMount is the directory of all sources, in paths and in sandboxes.
const SourcesMount = "/library/docs/"

// Source is a published, read-only directory with an audience. Readers see it as it was at
// one commit, its snapshot. The JSON is part of the command line's contract.
type Source struct {
	// ID is unique on the server. It is also the name of the source's directory under
	// SourcesMount.
	ID string `json:"id"`
	SourceText
	Kind SourceKind `json:"kind"`

	// Space and Dir are what is published; an empty Dir is the whole space.
	Space SpaceID `json:"space"`
	Dir   Path    `json:"dir"`
	// By is the publisher. Owner is the publisher's name; only the service sets it.
	By    UserID `json:"-"`
	Owner string `json:"by"`

	// Everybody lets everyone on the server read the source. Otherwise only By and Users
	// may read it. Readers are the names of Users; only the service sets them.
	Everybody bool     `json:"everybody"`
	Users     []UserID `json:"-"`
	Readers   []string `json:"readers,omitempty"`

	Published time.Time `json:"-"`
	Changed   time.Time `json:"-"` // the last change of its texts or audience

	State   SourceState `json:"state"`
	Problem string      `json:"problem,omitempty"` // of a failed source: a sentence for people
	// Collection is the id of the snapshots in the search index. Each publication has a new
	// id, so that a new publication never shows results of an ended one.
	Collection SpaceID `json:"-"`
	// Commit is the commit of the snapshot. It is empty before the first snapshot.
	Commit CommitID `json:"commit,omitempty"`
	Files  int      `json:"files"`
	Bytes  int64    `json:"bytes"`
	// Synced is when the source was last found to be up to date.
	Synced time.Time `json:"synced,omitzero"`
}

// SourceText is what the publisher of a source writes about it.
type SourceText struct {
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	// Aliases are other names that people use for the source, separated by commas.
	Aliases string `json:"aliases,omitempty"`
}

// Names returns the title and the aliases.
func (t SourceText) Names() []string {
	names := []string{t.Title}
	for a := range strings.SplitSeq(t.Aliases, ",") {
		if a = strings.TrimSpace(a); a != "" {
			names = append(names, a)
		}
	}
	return names
}

// SourceField is a field of SourceText.
type SourceField struct {
	Name string // the name in JSON, flags, forms and errors
	Text *string
	Max  int // characters
}

// Fields returns every field of t. The store, the pages and the command line use this list, so a
// new field reaches all of them.
func (t *SourceText) Fields() []SourceField {
	return []SourceField{
		{"title", &t.Title, 80},
		{"description", &t.Description, 300},
		{"aliases", &t.Aliases, 200},
	}
}

// The other fields of a source that an error can name (see fault.FieldOf).
const (
	SourceName    = "name"
	SourceDir     = "dir"
	SourceReaders = "readers"
	SourceMemory  = "memory" // the consent to publish memory
)

// Upstream reports whether the files of the source come from a sync.
func (s Source) Upstream() bool { return s.Kind != SourceSpace }

// Mount returns the source's directory in paths and in sandboxes.
func (s Source) Mount() string { return SourcesMount + s.ID }
