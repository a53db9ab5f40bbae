package web

import (
	"context"
	"io"

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

// Setup are the operations of the first steps; *service.Service has them.
type Setup interface {
	GetRemote(ctx context.Context, a service.Actor, in service.GetRemoteInput) (space.RemoteStatus, error)
	FetchRemote(ctx context.Context, a service.Actor, in service.FetchRemoteInput) (service.None, error)
	StartImport(ctx context.Context, a service.Actor, in service.StartImportInput) (service.None, error)
	GetImport(ctx context.Context, a service.Actor, in service.GetImportInput) (*service.ImportState, error)
}

// PushOf returns the status of a space's remote.
func (s *Site) PushOf(v *Visit, id space.SpaceID) (RemoteView, error) {
	st, err := s.Setup.GetRemote(v.R.Context(), v.Actor(), service.GetRemoteInput{Space: service.SpaceRef{ID: id}})
	return s.viewOf(st), err
}

// Reviews are what AIs changed in the files that instruct every AI and that waits for a
// person's decision.
type Reviews interface {
	// Waiting returns what differs from what a person last knew, as far as is known:
	// behind reports that the history is still being read. It never takes long; if ctx
	// is over, it returns at once.
	Waiting(ctx context.Context, id space.SpaceID) (list []space.Review, behind bool, err error)
}
