package web

import (
	"context"
	"io"
	"time"

	"satchel/internal/service"
	"satchel/internal/space"
)

// History reads what was committed to spaces; the store of spaces
// is one. Errors are the store's faults.
type History interface {
	// Resolve turns what an address names into a commit; "" is head.
	Resolve(ctx context.Context, id space.SpaceID, at string) (space.CommitID, error)
	// Log lists commits, newest first, without their files.
	Log(ctx context.Context, id space.SpaceID, q space.LogQuery) ([]space.Commit, error)
	// LogPage is Log for pages that do not grow with the history: it looks at walk
	// commits at most. cursor is the next of the page before, "" for the first;
	// next is "" at the end.
	LogPage(ctx context.Context, id space.SpaceID, at space.CommitID, path space.Path, cursor string, limit, walk int) (commits []space.Commit, next string, err error)
	// LastChanges reports which commit of the last walk changed each name in a
	// directory last.
	LastChanges(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path, walk int) (map[string]space.Commit, error)
	// Show is a commit with the files that it changed against its first parent.
	Show(ctx context.Context, id space.SpaceID, at space.CommitID) (space.Commit, error)
	// Patch is a unified diff of a path, or of everything with "".
	Patch(ctx context.Context, id space.SpaceID, from, to space.CommitID, path space.Path) (string, error)
	// Changes lists the first files at or under a path that differ between two
	// commits ("" for the empty tree), and how many do.
	Changes(ctx context.Context, id space.SpaceID, from, to space.CommitID, path space.Path, limit int) (files []space.FileChange, total int, err error)
	// FilePatch is a unified diff of one file that Show or Diff listed.
	FilePatch(ctx context.Context, id space.SpaceID, f space.FileChange) (string, error)
	// MergeText puts together by lines what became of base in ours and in theirs, as
	// git merge-file does, with its marks of seven letters around conflicts. It is
	// bounded in time and memory, and an error where that does not do.
	MergeText(ctx context.Context, base, ours, theirs []byte) ([]byte, error)
	// Bundle writes a git bundle of the whole history.
	Bundle(ctx context.Context, id space.SpaceID, w io.Writer) error
}

// Operations are operations of the service on files, reviews and pending files;
// *service.Service performs them.
type Operations interface {
	WriteFiles(ctx context.Context, a service.Actor, in service.WriteFilesInput) (space.Commit, error)
	Restore(ctx context.Context, a service.Actor, in service.RestoreInput) (space.Commit, error)
	Revert(ctx context.Context, a service.Actor, in service.RevertInput) (space.Commit, error)
	KeepReview(ctx context.Context, a service.Actor, in service.DecideReviewInput) (service.None, error)
	UndoReview(ctx context.Context, a service.Actor, in service.DecideReviewInput) (space.Commit, error)
	ListReviewDecisions(ctx context.Context, a service.Actor, in service.ListReviewDecisionsInput) ([]space.ReviewDecision, error)
	ListPendingFiles(ctx context.Context, a service.Actor, in service.ListPendingFilesInput) ([]space.PendingFile, error)
	AllowPendingSecrets(ctx context.Context, a service.Actor, in service.AllowPendingSecretsInput) (service.None, error)
	DiscardPendingFile(ctx context.Context, a service.Actor, in service.DiscardPendingFileInput) (int, error)
}

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
