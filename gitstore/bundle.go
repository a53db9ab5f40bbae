package gitstore

import (
	"context"
	"io"

	"satchel/gitstore/gitcmd"
	"satchel/internal/space"
)

// Bundle writes a git bundle of the space's whole history to w: one file from
// which git clones, and which Import takes. Commits and reads go on meanwhile.
func (s *Store) Bundle(ctx context.Context, id space.SpaceID, w io.Writer) error {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	r.unreached.RLock() // a purge must not run beside what hands out its commits
	defer r.unreached.RUnlock()
	_, err = s.git.Run(ctx, gitcmd.Cmd{
		Dir: r.dir, GitDir: r.dir, Stdout: w,
		Args: []string{"bundle", "create", "--quiet", "-", "HEAD", branch},
	})
	if err != nil {
		return r.internalf(err, "bundle")
	}
	return nil
}
