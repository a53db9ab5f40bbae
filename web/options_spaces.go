package web

import (
	"context"
	"io"

	"satchel/internal/service"
	"satchel/internal/space"
)

// History reads the commits of spaces. The store of spaces implements it; errors are its
// faults.
type History interface {
	// Resolve returns the commit with a name from an address; "" means head.
	Resolve(ctx context.Context, id space.SpaceID, at string) (space.CommitID, error)
	// Log lists commits, newest first, without their files.
	Log(ctx context.Context, id space.SpaceID, q space.LogQuery) ([]space.Commit, error)
	// LogPage is Log with bounded work: it visits at most walk commits. cursor is the next
	// of the previous page, or "" for the first; next is "" at the end.
	LogPage(ctx context.Context, id space.SpaceID, at space.CommitID, path space.Path, cursor string, limit, walk int) (commits []space.Commit, next string, err error)
	// LastChanges returns the last commit that changed each name in a directory. It visits
	// at most walk commits.
	LastChanges(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path, walk int) (map[string]space.Commit, error)
	// Show returns a commit with the files that it changed against its first parent.
	Show(ctx context.Context, id space.SpaceID, at space.CommitID) (space.Commit, error)
	// Patch returns a unified diff of a path; "" means all files.
	Patch(ctx context.Context, id space.SpaceID, from, to space.CommitID, path space.Path) (string, error)
	// Changes returns the first files at or under a path that differ between two commits
	// ("" for the empty tree), and the total number of such files.
	Changes(ctx context.Context, id space.SpaceID, from, to space.CommitID, path space.Path, limit int) (files []space.FileChange, total int, err error)
	// FilePatch returns a unified diff of a file that Show or Changes returned.
	FilePatch(ctx context.Context, id space.SpaceID, f space.FileChange) (string, error)
	// MergeText merges ours and theirs, which both derive from base, by lines. It marks
	// conflicts as git merge-file does. Its time and memory are limited; beyond them it
	// returns an error.
	MergeText(ctx context.Context, base, ours, theirs []byte) ([]byte, error)
	// Bundle writes a git bundle of the whole history.
	Bundle(ctx context.Context, id space.SpaceID, w io.Writer) error
}

// Operations are the operations on files, reviews and pending files; *service.Service
// implements them.
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

// Reviews are the changes by AIs to files that instruct every AI. They wait for a person's
// decision.
type Reviews interface {
	// Waiting returns the changes that wait for a decision. behind reports that the history
	// is still being read, so that some may be missing. Waiting is quick, and returns at
	// once if ctx is done.
	Waiting(ctx context.Context, id space.SpaceID) (list []space.Review, behind bool, err error)
}
