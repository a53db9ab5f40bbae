package gitstore

import (
	"context"
	"errors"
	"fmt"

	"satchel/gitstore/packfile"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Warned is an error of Options.Screen that allows a file to be committed and adds a
// warning to Commit.Warnings.
type Warned struct{ Why string }

func (w Warned) Error() string { return w.Why }

// screen asks Options.Screen about a file's content. What the repository holds
// already is nothing new: a remote has it, or refuses to have it, whatever
// becomes of this change; so a file may be moved and restored. The error is the
// file's refusal where it has a fault.Error, and the whole change's otherwise.
func (r *repo) screen(ctx context.Context, q request, content []byte) (warning string, err error) {
	if r.s.o.Screen == nil || q.delete || r.db.Has(q.hash) {
		return "", nil
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	err = r.s.o.Screen(ctx, r.id, q.path, content, func() ([]byte, error) {
		at, err := r.trees().Lookup(r.head.Load().tree, string(q.path))
		if err != nil || !at.HasFile() {
			return nil, err
		}
		b, err := r.db.Blob(at.Hash)
		if packfile.Unreadable(err) {
			return nil, nil // the whole content counts as new
		}
		return b, err
	})
	return judged(ctx, err)
}

// screenMessage asks Options.Screen about a commit's message, which is pushed
// like any file.
func (r *repo) screenMessage(ctx context.Context, msg string) (warning string, err error) {
	if r.s.o.Screen == nil || msg == "" {
		return "", nil
	}
	return judged(ctx, r.s.o.Screen(ctx, r.id, space.CommentPath, []byte(msg), nothing))
}

func nothing() ([]byte, error) { return nil, nil }

// judged separates a warning of Options.Screen from other errors.
func judged(ctx context.Context, err error) (warning string, _ error) {
	if err != nil && ctx.Err() != nil {
		return "", ctx.Err() // the error of Screen says nothing about the file
	}
	var w Warned
	if errors.As(err, &w) {
		return w.Why, nil
	}
	return "", err
}

// screenHistory asks Options.Screen about everything in an imported history. A
// refusal refuses the whole history, because no part of it can be left out.
func (r *repo) screenHistory(ctx context.Context, from *quarantine, progress func(string)) (warnings []space.Warning, err error) {
	if r.s.o.Screen == nil {
		return nil, nil
	}
	progress("Looking for secrets in the history")
	err = from.r.walkBlobs(ctx, from.head, "", func(at space.CommitID, p space.Path, content []byte) error {
		asked, shown := p, fmt.Sprintf("%s at %s", p, at.Short())
		if p == "" {
			asked, shown = space.CommentPath, fmt.Sprintf("%s of %s", space.CommentPath, at.Short())
		}
		warning, err := judged(ctx, r.s.o.Screen(ctx, r.id, asked, content, nothing))
		if isFault(err) {
			return fault.Wrap(err, fault.CodeOf(err), "The history cannot be imported, because all of it would be pushed. Commit %s: %s", at.Short(), fault.PublicOf(err))
		}
		if warning != "" && len(warnings) < maxImportNotes {
			warnings = append(warnings, space.Warning{Path: shown, Why: warning})
		}
		return err
	})
	return warnings, err
}

func isFault(err error) bool {
	var f *fault.Error
	return errors.As(err, &f)
}
