package rank

import (
	"fmt"

	"satchel/internal/space"
	"satchel/tools/index/postings"
)

// Source is one database of a search.
type Source struct {
	*postings.Snapshot
	ID    space.SpaceID
	Label string
	Mount string // the directory under which the source's paths are shown; "" for none
	// Names are names of the source besides its label. The documents of a source that the
	// query names rank higher.
	Names []string
	// Version is the version of the documents that state no version; "" if it is not known.
	Version string
	Web     bool // documents have their own address on the web

	order  int  // position among the databases of the search
	scored int  // how many terms have scores in the scratch memory
	unread bool // not all passages with the words of a phrase were checked for it
}

// Shown returns the path of a file as answers write it.
func (s *Source) Shown(path string) string {
	if s.Mount == "" {
		return path
	}
	return s.Mount + "/" + path
}

// SourceError is the failure of one database.
type SourceError struct {
	ID  space.SpaceID
	Err error
}

func (e *SourceError) Error() string { return fmt.Sprintf("search %s: %v", e.ID, e.Err) }
func (e *SourceError) Unwrap() error { return e.Err }

// Failed wraps an error of the database in a SourceError, which has the database's ID.
func (s *Source) Failed(err error) error { return &SourceError{s.ID, err} }
