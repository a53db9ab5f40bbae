package merge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"satchel/gitstore/gitcmd"
	"satchel/internal/bytesize"
	"satchel/internal/fault"
)

// Limits of a merge of texts. A person waits for the merge, and everybody who may write can
// request merges.
const (
	textBytes   = 16 << 20 // per text
	textTime    = 5 * time.Second
	textsAtOnce = 2
)

// Texts merges texts line by line, at most textsAtOnce at a time.
type Texts struct {
	git  gitcmd.Runner
	dir  string
	free chan struct{}
}

// NewTexts returns a Texts that works in directories below dir.
func NewTexts(git gitcmd.Runner, dir string) *Texts {
	return &Texts{git: git, dir: dir, free: make(chan struct{}, textsAtOnce)}
}

// Merge merges the changes from base to ours with those from base to theirs, line by
// line, as git merge-file does. It marks each conflict with git's markers of seven
// characters ("<<<<<<< ours", "=======", ">>>>>>> theirs"). conflicts reports whether
// there is a conflict. A caller that must distinguish markers from text passes lines that
// cannot be markers. A text larger than 16 MiB is a fault.TooLarge. A merge that takes
// longer than five seconds fails.
func (t *Texts) Merge(ctx context.Context, base, ours, theirs []byte) (out []byte, conflicts bool, err error) {
	if max(len(base), len(ours), len(theirs)) > textBytes {
		return nil, false, fault.New(fault.TooLarge, "Only texts of up to %s can be merged.", bytesize.Text(textBytes))
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
		// The directory may be inside a repository of the operator, whose settings must
		// not apply. This command uses no attributes and no filters.
		Env:    []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)},
		Config: []string{"merge.conflictStyle=merge"},
		Args:   []string{"merge-file", "-p", "--quiet", "--marker-size=7", "-L", "ours", "-L", "base", "-L", "theirs", "ours", "base", "theirs"},
	})
	// The exit status is the number of conflicts, at most 127. A text with conflicts is not empty.
	// Without output, a shell that cannot run git may have ended with such a status.
	var g *gitcmd.Error
	if errors.As(err, &g) && g.ExitCode() > 0 && g.ExitCode() <= 127 && len(g.Stdout) > 0 && !g.Cut {
		return g.Stdout, true, nil
	}
	return out, false, err
}
