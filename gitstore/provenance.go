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

// Reasons in the branch's reflog. committing begins the reason for a commit that this
// server made. adopting is the reason for a foreign history that became the space's.
const (
	committing = "commit: "
	adopting   = "import"
)

// provenance is the set of commits that this server made, as far as the branch's reflog
// was read.
type provenance struct {
	mu   sync.Mutex
	made map[packfile.Hash]bool
	read int64 // how many bytes of the reflog were read
}

// forget makes the next update read the whole reflog, which was rewritten.
func (p *provenance) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made, p.read = nil, 0
}

// madeHere reports whether this server made a commit, by the branch's reflog. It
// returns false for a commit from a remote or an import, whatever its trailers say, and
// for a commit whose line GC dropped from the reflog (see Limits.Reflog).
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

// update reads the new lines of the reflog.
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

// proven returns c as a space.Commit. Tool and Client are those of its trailers only if
// this server made the commit.
func (r *repo) proven(c commits.Raw, id packfile.Hash) space.Commit {
	out, tool, client := c.Read(id)
	if tool == "" && client == "" {
		return out
	}
	made, err := r.madeHere(id)
	if err != nil {
		r.logger().Error("The reflog of a branch cannot be read, so the tools of its commits are unknown.", "error", err)
	}
	if made && err == nil {
		out.Tool, out.Client = tool, client
	} else {
		out.ClaimedTool = tool
	}
	return out
}

// rewritten returns a commit that a purge made. id is its new id, and the parameter was is its
// id before the purge. Tool and Client depend on who made the old commit, as in proven.
func (r *repo) rewritten(c commits.Raw, was, id packfile.Hash) space.Commit {
	out := r.proven(c, was)
	out.ID = packfile.CommitID(id)
	return out
}

// why returns the reason of a line: the text after the first tab. The identity and the
// time before the reason contain no tab.
func (l logLine) why() string {
	_, why, _ := strings.Cut(l.rest, "\t")
	return why
}
