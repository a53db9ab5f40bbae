package web

import (
	"context"
	"time"

	"satchel/internal/space"
)

// Setup is what the pages of the first steps need of the rest of the server.
type Setup interface {
	// Fetch has a space's copy elsewhere asked for news, soon; it does not wait.
	Fetch(id space.SpaceID)
	// Push reports how a space and its copy elsewhere stand.
	Push(ctx context.Context, id space.SpaceID) (PushState, error)
	// Import begins to fill a space from a public https git URL, and returns before
	// it is done. It ends where by may not change the space any more. The error is a
	// fault.Conflict while another import of the space runs, a fault.Limited while
	// one of the person's does, and a fault.Invalid for an address that cannot be
	// one.
	Import(ctx context.Context, by space.UserID, id space.SpaceID, url string, m space.Meta) error
	// Imported reports how the last import of a space goes or went; ok is false if
	// none is known.
	Imported(id space.SpaceID) (i ImportState, ok bool)
}

// PushState is how a space and its copy elsewhere stand.
type PushState struct {
	Remote string // URL; empty if the space is on this server alone
	// State is local, pushed, queued, syncing or failed.
	State string
	// Detail and Remedy say of a failure what happened and what to do.
	Detail, Remedy string
	LastSync       time.Time // when both were last seen to be the same
	// Every is how often the copy is asked for news while the space is in use; 0 if
	// only a use has it asked. Told: it tells by itself what comes there.
	Every time.Duration
	Told  bool
}

// ImportState is how an import goes or went.
type ImportState struct {
	From    string
	Running bool
	Line    string // the latest of its progress
	Problem string // why it failed; else it is done, or runs
	Files   int    // that it read
	Left    int    // that were left out
	// Replaced is how many files gave way that the space began with and nobody had
	// changed.
	Replaced int
	// Warnings is how many places look like secrets, and Warning is the first one.
	Warnings int
	Warning  space.Warning
	Began    time.Time
	Ended    time.Time
}

// routeOnboarding adds the ways to bring what one has.
func (s *Site) routeOnboarding() {
	s.Handle("GET /spaces/{id}/bring", LimitPage, SignedIn, s.showBring)
	s.Handle("POST /spaces/{id}/bring/questions", LimitPage, SignedIn, s.answerQuestions)
	if s.Setup != nil {
		s.Handle("GET /spaces/{id}/bring/import", LimitPage, SignedIn, s.showImport)
		s.Handle("POST /spaces/{id}/bring/import", LimitSignIn, SignedIn, s.beginImport)
	}
}
