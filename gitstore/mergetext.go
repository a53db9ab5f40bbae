package gitstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"satchel/gitstore/gitcmd"
	"satchel/internal/fault"
)

// Bounds of a merge of texts for a page: somebody waits for it, and anybody who
// may write can ask for one.
const (
	mergeTextBytes = 16 << 20 // of one text
	mergeTextTime  = 5 * time.Second
	mergeTexts     = 2 // at once
)

// MergeText puts together by lines what became of base in ours and in theirs, as
// git merge-file does: the smallest parts that both changed, each differently,
// stand between git's marks of seven letters ("<<<<<<< ours", "=======",
// ">>>>>>> theirs"). Who needs to tell marks from text gives lines that cannot be
// marks. It is of no space: nothing is read or kept but these three. Texts that
// are larger than 16 MiB, or take git longer than a few seconds, fail.
func (s *Store) MergeText(ctx context.Context, base, ours, theirs []byte) ([]byte, error) {
	out, _, err := s.mergeLines(ctx, base, ours, theirs)
	return out, err
}

// mergeLines is MergeText, and reports whether there are conflicts.
func (s *Store) mergeLines(ctx context.Context, base, ours, theirs []byte) (out []byte, conflicts bool, err error) {
	if max(len(base), len(ours), len(theirs)) > mergeTextBytes {
		return nil, false, fault.New(fault.TooLarge, "The texts are larger than %s, which is what can be merged.", sizeText(mergeTextBytes))
	}
	ctx, cancel := context.WithTimeout(ctx, mergeTextTime)
	defer cancel()
	select {
	case s.merges <- struct{}{}:
		defer func() { <-s.merges }()
	case <-ctx.Done():
		return nil, false, fmt.Errorf("merge of texts: %w", context.Cause(ctx))
	}
	out, conflicts, err = s.mergeText(ctx, base, ours, theirs)
	if err != nil {
		return nil, false, explainDisk(fmt.Errorf("merge of texts: %w", err))
	}
	return out, conflicts, nil
}

func (s *Store) mergeText(ctx context.Context, base, ours, theirs []byte) (out []byte, conflicts bool, err error) {
	dir, err := os.MkdirTemp(filepath.Join(s.o.Dir, cacheDir), "merge-")
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for name, text := range map[string][]byte{"base": base, "ours": ours, "theirs": theirs} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, false, err
		}
	}
	out, err = s.git.Run(ctx, gitcmd.Cmd{
		Dir: dir,
		// The store may lie within a repository of the operator's, whose settings are
		// not the store's. There are no attributes or filters for this command.
		Env:    []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)},
		Config: []string{"merge.conflictStyle=merge"},
		Args:   []string{"merge-file", "-p", "--quiet", "--marker-size=7", "-L", "ours", "-L", "base", "-L", "theirs", "ours", "base", "theirs"},
	})
	// The exit status is how many conflicts there are, 127 for all from there on.
	var g *gitcmd.Error
	if errors.As(err, &g) && g.ExitCode() > 0 && g.ExitCode() <= 127 && !g.Cut {
		return g.Stdout, true, nil
	}
	return out, false, err
}
