package reviews

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strconv"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// past is what files outside of the roots had in a history up to a commit, whether it
// is there still or not. It is found in the history each time that it is asked for and
// kept nowhere: so it is the same after a restart, it needs no word of who brought a
// commit when, and what a purge takes away is gone from it too.
type past struct {
	at  space.CommitID
	had map[uint64]struct{} // the beginnings of the contents' ids: one too many asks a person
	// taken are the last contents of files that were taken away, by the file's name,
	// newest first.
	taken map[string][]space.BlobID
	left  int  // changes that may still be looked at
	all   bool // there are too many to tell
}

// maxTaken bounds how many contents of one name are remembered to compare lines with.
const maxTaken = 8

// pastOf returns what files outside had up to a commit. A walk along a history looks
// through it once, and from then on through what is new.
func (w *stepper) pastOf(ctx context.Context, at space.CommitID) (*past, error) {
	k := w.past
	if k == nil {
		k = &past{had: map[uint64]struct{}{}, taken: map[string][]space.BlobID{}, left: w.o.Remembered}
	}
	if k.all || k.at == at {
		return k, nil
	}
	w.past = nil
	newest := map[string][]space.BlobID{}
	err := w.o.Git.Past(ctx, w.id, at, k.at, func(files []space.FileChange) bool {
		if k.left -= 1 + len(files); k.left < 0 {
			return false
		}
		for _, f := range files {
			if Covers(f.Path) {
				continue
			}
			if f.New != "" {
				k.had[begins(f.New)] = struct{}{}
				continue
			}
			name := path.Base(string(f.Path))
			if list := newest[name]; len(list) < maxTaken && !slices.Contains(list, f.Old) {
				newest[name] = append(list, f.Old)
			}
		}
		return true
	})
	if k.left < 0 || fault.CodeOf(err) == fault.TooLarge {
		k, err = &past{all: true}, nil
	}
	if err != nil {
		return nil, err
	}
	for name, list := range newest {
		for _, b := range k.taken[name] {
			if len(list) < maxTaken && !slices.Contains(list, b) {
				list = append(list, b)
			}
		}
		k.taken[name] = list
	}
	k.at, w.past = at, k
	return k, nil
}

// begins are the first bits of a content's id.
func begins(b space.BlobID) uint64 {
	n, _ := strconv.ParseUint(string(b[:min(len(b), 16)]), 16, 64)
	return n
}

// outside tells whether a file outside had what a commit brings, at any time up to its
// parent: the very content, or, of a new file, most of the lines of one of its name
// that was taken away.
func (w *stepper) outside(ctx context.Context, parent space.CommitID, f change) (bool, error) {
	k, err := w.pastOf(ctx, parent)
	if err != nil {
		return false, err
	}
	if k.all {
		return true, nil
	}
	if _, ok := k.had[begins(f.now.blob)]; ok || f.old.blob != "" {
		return ok, nil
	}
	taken := k.taken[path.Base(string(f.path))]
	if len(taken) == 0 {
		return false, nil
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

// alike tells whether most of the lines of one text are in the other. What is shorter
// than a few letters, such as the rules around the head of a skill, is no line.
func alike(a, b []byte) bool {
	const short = 4
	count := map[string]int{}
	var mine, theirs, both int
	for line := range bytes.Lines(a) {
		if line = bytes.TrimSpace(line); len(line) >= short {
			count[string(line)]++
			mine++
		}
	}
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) >= short {
			theirs++
			if count[string(line)] > 0 {
				count[string(line)]--
				both++
			}
		}
	}
	return both > 0 && 2*both >= min(mine, theirs)
}
