package web

import (
	"context"
	"time"

	"satchel/internal/space"
	"satchel/tools"
)

// Publishing is the library as the pages have it: what people publish of their
// spaces, and what a visitor may read.
type Publishing interface {
	// Library lists what a user may read, and reads it.
	tools.Library
	// Sync makes a newer snapshot of a source that the user may read; a failure is
	// told in the Source. The error is a fault.NotFound for any other.
	Sync(ctx context.Context, user space.UserID, id string) (tools.Source, error)
	// Published lists the sources of a space, by id.
	Published(ctx context.Context, id space.SpaceID) ([]Published, error)
	// Preview shows what publishing a directory of a space would show, and at most
	// limit of its files by name.
	Preview(ctx context.Context, id space.SpaceID, dir string, limit int) (PublishPreview, error)
	// Taken tells whether a source on this server has the name.
	Taken(id string) bool
	// Publish publishes a directory of a space that the person owns, or changes how
	// that is done. The error is a fault.Invalid for what they wrote, and a
	// fault.Conflict where the name is taken; fault.PartOf names the part
	// that is wrong: name, title, description, dir, readers or memory.
	Publish(ctx context.Context, by space.UserID, r PublishRequest) error
	// Unpublish ends it; fault.NotFound where the space has no such source.
	Unpublish(ctx context.Context, by space.UserID, id space.SpaceID, source string) error
}

// Published is a source as its publisher sees it.
type Published struct {
	tools.Source
	Dir       string // "" is the whole space
	Everybody bool
	Readers   []string // names of users, where it is not for everybody
	Since     time.Time
}

// PublishRequest says what is published, and for whom.
type PublishRequest struct {
	ID, Label, Description string
	Space                  space.SpaceID
	Dir                    string
	Everybody              bool
	Readers                []string // names of users
	// WithMemory is the person's word that the space's memory is to be shown.
	WithMemory bool
	// New refuses a name that is there already.
	New bool
}

// PublishPreview is what others would see.
type PublishPreview struct {
	Dir   string // "" is the whole space
	Files []tools.Entry
	Total int
	Bytes int64
	Left  int // links and names that would be left out
	// Memory tells that the space's memory is in it.
	Memory bool
	// Secrets are the files, of Scanned that were looked through, in which
	// something looks like a secret.
	Secrets []string
	Scanned int
}
