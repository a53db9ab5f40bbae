package gitstore

import (
	"context"
	"errors"

	"satchel/internal/fault"
)

// screen asks Options.Screen about a file's content. What the repository holds
// already is nothing new: a remote has it, or refuses to have it, whatever
// becomes of this change; so a file may be moved and restored. The error is the
// file's refusal where it has a fault.Error, and the whole change's otherwise.
func (r *repo) screen(ctx context.Context, q request, content []byte) error {
	if r.s.o.Screen == nil || q.delete || r.db.has(q.hash) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := r.s.o.Screen(ctx, r.id, q.path, content, func() ([]byte, error) {
		at, err := r.lookup(r.head.Load().tree, string(q.path))
		if err != nil || !at.isFile() {
			return nil, err
		}
		return r.db.blob(at.hash)
	})
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // what Screen made of it is no word on the file
	}
	return err
}

// screenMessage asks Options.Screen about a commit's message, which is pushed
// like any file, and returns what it may be. With a fault.Error that is nothing.
func (r *repo) screenMessage(ctx context.Context, msg string) (string, error) {
	if r.s.o.Screen == nil || msg == "" {
		return msg, nil
	}
	err := r.s.o.Screen(ctx, r.id, "commit message", []byte(msg), func() ([]byte, error) { return nil, nil })
	if err != nil && ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", err
	}
	return msg, nil
}

func isFault(err error) bool {
	var f *fault.Error
	return errors.As(err, &f)
}
