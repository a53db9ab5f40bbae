package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"satchel/gitstore/commits"
	"satchel/gitstore/gitcmd"
	"satchel/gitstore/packfile"
	"satchel/internal/space"
)

// A crash of the process or the machine may leave these traces of a commit. Opening the
// space repairs them:
//
//	a temporary pack           removed; the commit was not acknowledged
//	a pack without an index,   the index is made again
//	or with a damaged one
//	half a line in the reflog  cut off; the commit was not acknowledged
//	a reflog ahead of the ref  the ref moves to the reflog's last commit, which is durable
//	refs/heads/main.lock       removed; this process holds the directory's lock

// recoverPacks removes temporary packs, and writes missing and damaged indexes again.
func (s *Store) recoverPacks(ctx context.Context, dir string) error {
	es, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range es {
		name := e.Name()
		if strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".tmp-") {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
			continue
		}
		base, ok := strings.CutSuffix(name, ".pack")
		if !ok {
			continue
		}
		base = filepath.Join(dir, base)
		p, err := packfile.Load(base)
		if err == nil {
			p.Close()
			continue
		}
		if !errors.Is(err, packfile.ErrBadIndex) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.o.Logger.Warn("Making a pack's index again.", "pack", name, "why", err)
		if err := packfile.IndexPack(base); errors.Is(err, packfile.ErrDelta) {
			os.Remove(base + ".idx")
			if _, err := s.git.Run(ctx, gitcmd.Cmd{Dir: dir, Args: []string{"index-pack", base + ".pack"}}); err != nil {
				return fmt.Errorf("index %s: %w", name, err)
			}
		} else if err != nil {
			return fmt.Errorf("index %s: %w", name, err)
		}
	}
	return nil
}

// recoverHead finds the newest durable commit and points the ref to it.
func (r *repo) recoverHead() error {
	if err := os.Remove(r.refFile() + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	logged, size, err := r.lastLogged()
	if err != nil {
		return err
	}
	if st, err := os.Stat(r.logFile()); err == nil && st.Size() != size {
		if err := os.Truncate(r.logFile(), size); err != nil {
			return err
		}
	}
	ref := r.readRef()
	head := ref
	switch {
	case logged.IsZero() || logged == ref:
	case ref.IsZero():
		head = logged
	default:
		// An operator's git may have moved the branch without a line in the reflog.
		// Otherwise the reflog is ahead of the ref. After ResetToRemote, the commit in the
		// reflog's last line may be older than the ref's.
		newer, err := commits.Reaches(r.db, ref, logged)
		if err != nil {
			return err
		}
		if (!newer || r.wasLogged(ref)) && !r.logIsWrong(logged, ref) {
			head = logged
		}
	}
	if head.IsZero() {
		return errors.New("the repository has no commit on " + branch)
	}
	st, err := r.state(head)
	if err != nil {
		return fmt.Errorf("head: %w", err)
	}
	if head != ref {
		r.s.o.Logger.Warn("The branch was behind its reflog and is moved to the reflog's last commit.", "space", r.id, "from", ref, "to", head)
		if err := r.writeRef(head); err != nil {
			if !isDiskFull(err) {
				return err
			}
			r.broken = &damage{err, -1} // the space can be read
		}
	}
	r.head.Store(st)
	return nil
}

// logIsWrong reports whether the new hash in the reflog's last line is damaged: the space
// has no such commit, and the branch is at a child of the line's old commit. If the hash is
// right but the commit was lost with its pack, the branch is at the line's old commit, or at
// the lost commit.
func (r *repo) logIsWrong(logged, ref packfile.Hash) bool {
	if _, err := commits.Get(r.db, logged); !errors.Is(err, packfile.ErrNotFound) {
		return false
	}
	b, err := os.ReadFile(r.logFile())
	if err != nil {
		return false
	}
	lines, _ := parseLog(b)
	c, err := commits.Get(r.db, ref)
	wrong := err == nil && len(lines) > 0 && slices.Contains(c.Parents, lines[len(lines)-1].old)
	if wrong {
		r.logger().Error("The last line of the branch's reflog is damaged; the branch stays as it is.", "log", logged, "branch", ref)
	}
	return wrong
}

// wasLogged reports whether the branch has been at a commit, by its reflog.
func (r *repo) wasLogged(h packfile.Hash) bool {
	b, err := os.ReadFile(r.logFile())
	if err != nil {
		return false
	}
	lines, _ := parseLog(b)
	return slices.ContainsFunc(lines, func(l logLine) bool { return l.now == h || l.old == h })
}

// Spaces lists the spaces on disk, sorted.
func (s *Store) Spaces() ([]space.SpaceID, error) {
	es, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return nil, err
	}
	var ids []space.SpaceID
	for _, e := range es {
		if name, ok := strings.CutSuffix(e.Name(), ".git"); ok {
			if id, err := space.ParseSpaceID(name); err == nil {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// logLine is one well-formed line of a reflog.
type logLine struct {
	old, now packfile.Hash
	rest     string // who, when and why, with the line's end
}

// parseLog returns the lines before the first malformed or incomplete one, and their
// size in bytes.
func parseLog(b []byte) (lines []logLine, size int64) {
	for {
		nl := bytes.IndexByte(b, '\n')
		if nl < 0 {
			return lines, size
		}
		f := strings.SplitN(string(b[:nl+1]), " ", 3)
		if len(f) < 3 {
			return lines, size
		}
		old, err1 := packfile.HashFrom(f[0])
		now, err2 := packfile.HashFrom(f[1])
		if errors.Join(err1, err2) != nil {
			return lines, size
		}
		lines = append(lines, logLine{old, now, f[2]})
		size, b = size+int64(nl)+1, b[nl+1:]
	}
}

// rewriteLog replaces each line of the branch's reflog with the result of rewrite, or
// drops the line if keep is false. It always keeps the last line, which makes head
// durable. In each line, the new commit of the line before replaces the old commit. The
// caller holds commitMu.
func (r *repo) rewriteLog(rewrite func(logLine) (_ logLine, keep bool)) error {
	b, err := os.ReadFile(r.logFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines, _ := parseLog(b)
	var out bytes.Buffer
	var last packfile.Hash
	for i, l := range lines {
		x, keep := rewrite(l)
		if keep {
			l = x
		}
		if keep || i == len(lines)-1 {
			out.WriteString(last.String() + " " + l.now.String() + " " + l.rest)
			last = l.now
		}
	}
	defer r.provenance.forget()
	return r.s.o.disk.ReplaceDurable(r.logFile(), out.Bytes(), 0o600)
}
