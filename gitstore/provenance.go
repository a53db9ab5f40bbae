package gitstore

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"
	"sync"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/internal/space"
)

// Reasons in the branch's log: of a commit that was made here, and of a history from
// elsewhere that the space was filled with as it is.
const (
	committing = "commit: "
	adopting   = "import"
)

// provenance is the set of commits that this server made, as far as the branch's log
// was read.
type provenance struct {
	mu   sync.Mutex
	made map[packfile.Hash]bool
	read int64 // bytes of the log
}

// forget makes the next look read the log again, which was rewritten.
func (p *provenance) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made, p.read = nil, 0
}

// madeHere reports whether this server made a commit, by the branch's log. A commit
// that came from a remote or with an import is not among them, whatever its trailers
// say, nor is one that Limits.Reflog has no room for.
func (r *repo) madeHere(id packfile.Hash) (bool, error) {
	r.provenance.mu.Lock()
	defer r.provenance.mu.Unlock()
	err := r.provenance.update(r.logFile())
	return r.provenance.made[id], err
}

// allMade returns the commits that this server made.
func (r *repo) allMade() (map[packfile.Hash]bool, error) {
	r.provenance.mu.Lock()
	defer r.provenance.mu.Unlock()
	err := r.provenance.update(r.logFile())
	return maps.Clone(r.provenance.made), err
}

// update reads what was added to the log.
func (p *provenance) update(log string) error {
	f, err := os.Open(log)
	if errors.Is(err, fs.ErrNotExist) {
		p.made, p.read = nil, 0
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Size() < p.read {
		p.made, p.read = nil, 0
	}
	b, err := io.ReadAll(io.NewSectionReader(f, p.read, st.Size()-p.read))
	if err != nil {
		return err
	}
	lines, n := parseLog(b)
	if p.made == nil {
		p.made = make(map[packfile.Hash]bool, len(lines))
	}
	for _, l := range lines {
		if strings.HasPrefix(l.why(), committing) {
			p.made[l.now] = true
		}
	}
	p.read += n
	return nil
}

// proven returns a raw commit as a space.Commit. Its Tool and Client are those of its
// trailers only if this server made it.
func (r *repo) proven(c commits.Raw, id packfile.Hash) space.Commit {
	out, tool, client := c.Read(id)
	if tool == "" && client == "" {
		return out
	}
	made, err := r.madeHere(id)
	if err != nil {
		r.logger().Error("The log of a branch cannot be read, so that nothing is known of who made its commits.", "error", err)
	}
	if made && err == nil {
		out.Tool, out.Client = tool, client
	} else {
		out.ClaimedTool = tool
	}
	return out
}

// rewritten is a commit that a purge makes of another.
func (r *repo) rewritten(c commits.Raw, was, id packfile.Hash) space.Commit {
	out := r.proven(c, was)
	out.ID = packfile.CommitID(id)
	return out
}

// why is what a line says was done: who did it stands before the tab, and has none.
func (l logLine) why() string {
	_, why, _ := strings.Cut(l.rest, "\t")
	return why
}
