package reviews

import (
	"bytes"
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"sync"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// past is what files outside of the roots had in the whole history of a space, whether
// it is there still or not, and on whatever branch it came: the ancestors of a commit
// from elsewhere are what its maker says, and the space may have had more by the time
// that it came in. It is found in the history and saved nowhere: so it is the same after
// a restart, it needs no word of who brought a commit when, and what a purge takes away
// is gone from it too.
type past struct {
	id space.SpaceID
	at space.CommitID // whose history it is
	// had is how many commits brought a content, by the beginning of its id: one too
	// many asks a person.
	had map[uint64]int
	// taken are contents of files that were taken away, by the file's name; more than
	// maxTaken of one are too many to tell.
	taken map[string][]space.BlobID
	used  int  // changes that were looked at
	all   bool // there are too many to tell
}

// maxTaken bounds with how many contents of one name lines are compared.
const maxTaken = 8

// pastOf returns what files outside had up to where the walk goes. From then on, in
// later walks too, only what is new is looked through.
func (w *stepper) pastOf(ctx context.Context) (*past, error) {
	k := w.past
	if k == nil {
		k = w.pasts.take(w.id)
	}
	if k == nil {
		k = &past{id: w.id, had: map[uint64]int{}, taken: map[string][]space.BlobID{}}
	}
	w.past = nil // where it is broken off, it is neither
	if !k.all && k.at != w.to {
		var stopped error
		err := w.o.Git.Past(ctx, w.id, w.to, k.at, func(files []space.FileChange) bool {
			k.add(files)
			stopped = w.breathe(ctx)
			return stopped == nil && k.used <= w.o.Remembered
		})
		if k.used > w.o.Remembered || fault.CodeOf(err) == fault.TooLarge {
			k, err = &past{id: w.id, all: true}, nil
		}
		if err = errors.Join(stopped, err); err != nil {
			return nil, err
		}
	}
	k.at, w.past = w.to, k
	return k, nil
}

// add takes in what a commit changed.
func (k *past) add(files []space.FileChange) {
	k.used += 1 + len(files)
	once := map[uint64]bool{}
	for _, f := range files {
		if Covers(f.Path) {
			continue
		}
		if f.New != "" {
			if b := begins(f.New); !once[b] {
				once[b] = true
				k.had[b]++
			}
			continue
		}
		name := path.Base(string(f.Path))
		if list := k.taken[name]; len(list) <= maxTaken && !slices.Contains(list, f.Old) {
			k.taken[name] = append(list, f.Old)
		}
	}
}

// pasts are what was found of some spaces, kept for the next walk. One is taken out
// while it is used.
type pasts struct {
	mu   sync.Mutex
	of   []*past // the newest last
	most int     // changes in all, of which the newest may have more
}

// take returns what is kept of a space, and keeps it no longer; nil where there is none.
func (p *pasts) take(id space.SpaceID) *past {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, k := range p.of {
		if k.id == id {
			p.of = slices.Delete(p.of, i, i+1)
			return k
		}
	}
	return nil
}

// keep keeps what was found of a space in the place of what was, and as many others
// as there is room for.
func (p *pasts) keep(k *past) {
	if k == nil {
		return
	}
	p.take(k.id)
	p.mu.Lock()
	defer p.mu.Unlock()
	const each = 1000 // what one counts beside its changes
	p.of = append(p.of, k)
	sum := 0
	for i := len(p.of) - 1; i >= 0; i-- {
		if sum += each + p.of[i].used; sum > p.most && i < len(p.of)-1 {
			p.of = slices.Delete(p.of, 0, i+1)
			return
		}
	}
}

// begins are the first bits of a content's id.
func begins(b space.BlobID) uint64 {
	n, _ := strconv.ParseUint(string(b[:min(len(b), 16)]), 16, 64)
	return n
}

// outside tells whether a file outside had what a commit brings, at any time and not by
// that commit alone: the very content, or, of a new file, most of the lines of one of its
// name that was taken away.
func (w *stepper) outside(ctx context.Context, c space.Commit, f change) (bool, error) {
	k, err := w.pastOf(ctx)
	if err != nil {
		return false, err
	}
	if k.all {
		return true, nil
	}
	others := k.had[begins(f.now.blob)]
	if slices.ContainsFunc(c.Files, func(o space.FileChange) bool { return o.New == f.now.blob && !Covers(o.Path) }) {
		others--
	}
	if others > 0 || f.old.blob != "" {
		return others > 0, nil
	}
	taken := k.taken[path.Base(string(f.path))]
	if len(taken) == 0 || len(taken) > maxTaken {
		return len(taken) > 0, nil
	}
	now, err := w.o.Git.ReadBlob(ctx, w.id, f.now.blob)
	if err != nil {
		return false, err
	}
	for _, b := range taken {
		was, err := w.o.Git.ReadBlob(ctx, w.id, b)
		switch {
		case fault.CodeOf(err) == fault.NotFound:
			continue // a purge took it
		case err != nil:
			return false, err
		case alike(was, now):
			return true, nil
		}
	}
	return false, nil
}

// shortLine is from how many bytes on a line says something.
const shortLine = 4

// alike tells whether most of the lines of one text are in the other. What is shorter
// than a few letters, such as the rules around the head of a skill, is no line.
func alike(a, b []byte) bool {
	count := map[string]int{}
	var mine, theirs, both int
	for line := range bytes.Lines(a) {
		if line = bytes.TrimSpace(line); len(line) >= shortLine {
			count[string(line)]++
			mine++
		}
	}
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) >= shortLine {
			theirs++
			if count[string(line)] > 0 {
				count[string(line)]--
				both++
			}
		}
	}
	return both > 0 && 2*both >= min(mine, theirs)
}
