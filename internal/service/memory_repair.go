package service

import (
	"context"
	"fmt"

	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// maxRepairNames is how many keys a repair tries until it finds a free path.
const maxRepairNames = 20

// RepairFactInput names a file under memory/ that is not a valid fact.
type RepairFactInput struct {
	Space SpaceRef   `json:"space"`
	Path  space.Path `json:"path"`
	// Base is the etag that the file must have. An empty Base accepts every version.
	Base space.BlobID `json:"base,omitempty"`
}

// RepairedFact is the result of RepairFact.
type RepairedFact struct {
	Commit space.CommitID `json:"commit"`
	Fact   MemoryFact     `json:"fact"` // the fact as it is now
}

// RepairFact makes a valid fact of a damaged file, by the rules of facts.Repair, and moves a
// misplaced file to the path of a fact. It overwrites no other file: if the path is taken,
// the key gets a number. One commit changes both paths, so a person can undo the repair.
func (s *Service) RepairFact(ctx context.Context, a Actor, in RepairFactInput) (RepairedFact, error) {
	v, err := s.open(ctx, a, "RepairFact", in.Space)
	if err != nil {
		return RepairedFact{}, err
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return RepairedFact{}, err
	}
	p, err := space.ParsePath(string(in.Path))
	if err != nil || !facts.Under(string(p)) || facts.Hidden(string(p)) {
		return RepairedFact{}, fault.New(fault.Invalid, "Name a file under memory/.")
	}
	at, err := v.Head(ctx)
	if err != nil {
		return RepairedFact{}, err
	}
	e, err := v.Lookup(ctx, at, p)
	if err != nil {
		return RepairedFact{}, err
	}
	f, err := v.ReadFact(ctx, e)
	switch {
	case err != nil:
		return RepairedFact{}, err
	case e.Dir:
		return RepairedFact{}, fault.New(fault.Invalid, "%s is a directory. Name a file.", p)
	case in.Base != "" && in.Base != e.Blob:
		return RepairedFact{}, fault.New(fault.Conflict, "The file has changed since it was read. Read it again.")
	case f.Problem == "":
		return RepairedFact{}, fault.New(fault.Invalid, "%s is a valid fact. There is nothing to repair.", p)
	case e.Mode == space.Symlink || space.IsConflictCopy(p) || e.Size > maxFactBytes:
		return RepairedFact{}, fault.New(fault.Invalid, "%s cannot be repaired. %s Open the file, and correct or delete it.", p, f.Problem)
	}
	was, err := v.ReadBlob(ctx, e.Blob)
	if err != nil {
		return RepairedFact{}, err
	}
	doc, ok := facts.Repair(was, s.o.Now())
	if !ok {
		return RepairedFact{}, fault.New(fault.Invalid, "%s has no text that could be a fact. Open the file, and correct or delete it.", p)
	}
	to, err := v.freeFact(ctx, at, p)
	if err != nil {
		return RepairedFact{}, err
	}
	changes := []space.Change{{Path: string(to), Content: doc, Mode: space.Regular}}
	if to == p {
		changes[0].Mode, changes[0].Base, changes[0].BaseMode = e.Mode, e.Blob, e.Mode
	} else {
		changes = append(changes, space.Change{Path: string(p), Op: space.Delete, Base: e.Blob})
	}
	c, err := s.commitAll(ctx, who, v.ID, changes, who.commitMeta("move", "Repair "+factNames(changes[:1])))
	if err != nil {
		return RepairedFact{}, err
	}
	if e, err = v.Lookup(ctx, c.ID, to); err != nil {
		return RepairedFact{}, err
	}
	f, err = v.ReadFact(ctx, e)
	return RepairedFact{Commit: c.ID, Fact: f}, err
}

// freeFact returns the path that the file at p gets as a fact: p itself if that is the path of
// a fact, or else a path at which there is nothing yet.
func (v View) freeFact(ctx context.Context, at space.CommitID, p space.Path) (space.Path, error) {
	if _, _, ok := facts.Place(string(p)); ok {
		return p, nil
	}
	kind, key := facts.RepairedPlace(string(p))
	for n := range maxRepairNames {
		name := key
		if n > 0 {
			name = fmt.Sprintf("%s-%d", key, n+1)
		}
		to, err := space.ParsePath(facts.Path(kind, name))
		if err != nil {
			break
		}
		_, taken, err := v.Find(ctx, at, to)
		if err != nil {
			return "", err
		}
		above, err := v.FileAbove(ctx, at, to)
		switch {
		case err != nil:
			return "", err
		case above == p: // the file itself would have to be a directory
			kind = facts.TypeOfRepaired
		case above == "" && !taken:
			return to, nil
		}
	}
	return "", fault.New(fault.Conflict, "There is no free name for %s. Move the file by hand.", p)
}
