package merge

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

// Bounds of a merge of texts: a person waits for it, and everybody who may write can
// ask for one.
const (
	textBytes   = 16 << 20 // of one text
	textTime    = 5 * time.Second
	textsAtOnce = 2
)

// Texts merges texts by lines, a few at once.
type Texts struct {
	git  gitcmd.Runner
	dir  string
	free chan struct{}
}

// NewTexts returns a Texts that works in directories below dir.
func NewTexts(git gitcmd.Runner, dir string) *Texts {
	return &Texts{git: git, dir: dir, free: make(chan struct{}, textsAtOnce)}
}

// Merge puts together by lines what became of base in ours and in theirs, as git
// merge-file does: the smallest parts that both changed, each differently, stand between
// git's marks of seven letters ("<<<<<<< ours", "=======", ">>>>>>> theirs"). A caller
// that must tell marks from text passes lines that cannot be marks. Texts that are larger
// than 16 MiB, or take git longer than a few seconds, fail.
func (t *Texts) Merge(ctx context.Context, base, ours, theirs []byte) (out []byte, conflicts bool, err error) {
	if max(len(base), len(ours), len(theirs)) > textBytes {
		return nil, false, fault.New(fault.TooLarge, "The texts are larger than %d MiB, which is what can be merged.", textBytes>>20)
	}
	ctx, cancel := context.WithTimeout(ctx, textTime)
	defer cancel()
	select {
	case t.free <- struct{}{}:
		defer func() { <-t.free }()
	case <-ctx.Done():
		return nil, false, fmt.Errorf("merge of texts: %w", context.Cause(ctx))
	}
	if out, conflicts, err = t.merge(ctx, base, ours, theirs); err != nil {
		return nil, false, fmt.Errorf("merge of texts: %w", err)
	}
	return out, conflicts, nil
}

func (t *Texts) merge(ctx context.Context, base, ours, theirs []byte) (out []byte, conflicts bool, err error) {
	dir, err := os.MkdirTemp(t.dir, "merge-")
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for name, text := range map[string][]byte{"base": base, "ours": ours, "theirs": theirs} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, false, err
		}
	}
	out, err = t.git.Run(ctx, gitcmd.Cmd{
		Dir: dir,
		// The directory may lie within a repository of the operator's, whose settings
		// must not count. There are no attributes or filters for this command.
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
