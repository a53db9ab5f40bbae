package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// MaxFactsAtOnce limits the facts that one call can remember or name.
const MaxFactsAtOnce = 50

// Limits of the operations on memory.
const (
	maxFacts        = 20_000    // files that are read for one list
	maxCheckedFacts = 200       // written files that are checked
	maxForgotten    = 20        // facts that one query forgets
	maxFactBytes    = 256 << 10 // bytes of a file that is read as a fact
	maxCachedFacts  = 20_000
	maxAlike        = 3   // similar facts that an answer names for each new fact
	maxQuoted       = 200 // characters of a value in an explanation
)

// MemoryFact is a fact in the memory of a space. It can also be a file under memory/ that
// is not a valid fact: then Problem is set.
type MemoryFact struct {
	Path space.Path `json:"path"`
	Type string     `json:"type,omitempty"`
	Key  string     `json:"key,omitempty"`
	facts.Fact
	Confidence *float64     `json:"confidence,omitempty"`
	Expired    bool         `json:"expired,omitempty"`
	Etag       space.BlobID `json:"etag"`
}

// Name returns the type and the key, as type/key. For a file at a path where no fact can be, it
// returns the path.
func (f MemoryFact) Name() string {
	if f.Type == "" {
		return string(f.Path)
	}
	return f.Type + "/" + f.Key
}

func (s *Service) today() string { return s.o.Now().UTC().Format(time.DateOnly) }

// ReadFact reads a file under memory/.
func (v View) ReadFact(ctx context.Context, e space.Entry) (MemoryFact, error) {
	out := MemoryFact{Path: e.Path, Etag: e.Blob}
	var ok bool
	if out.Type, out.Key, ok = facts.Place(string(e.Path)); !ok {
		out.Problem = facts.Misplaced
		return out, nil
	}
	switch {
	case e.Mode == space.Symlink:
		out.Problem = "It is a link."
		return out, nil
	case space.IsConflictCopy(e.Path):
		out.Problem = "It is the other version of a fact that was changed twice at once. Merge the two, and remove this file."
		return out, nil
	case e.Size > maxFactBytes:
		out.Problem = "It is too large for a fact."
		return out, nil
	}
	if out.Fact, ok = v.s.facts.Get(e.Blob); !ok {
		doc, err := v.ReadBlob(ctx, e.Blob)
		switch {
		case fault.CodeOf(err) == fault.Damaged:
			out.Problem = fault.PublicOf(space.Damaged(e.Path, err))
			return out, nil
		case err != nil:
			return MemoryFact{}, err
		}
		out.Fact = facts.Read(doc)
		v.s.facts.Add(e.Blob, out.Fact)
	}
	if out.HasSure {
		sure := out.Sure
		out.Confidence = &sure
	}
	today := v.s.today()
	if out.Confirmed > today {
		out.Confirmed = "" // a date in the future must not put the fact first
	}
	out.Expired = out.Over(today)
	return out, nil
}

// Memory lists the facts at a commit and the files under memory/ that are not valid facts,
// sorted by path. It leaves out files whose names begin with a dot.
func (v View) Memory(ctx context.Context, at space.CommitID) (FactList, error) {
	entries, err := v.Files(ctx, at, facts.Dir)
	if err != nil {
		return FactList{}, err
	}
	return v.readFacts(ctx, entries)
}

// readFacts reads files under memory/, except those whose names begin with a dot.
func (v View) readFacts(ctx context.Context, entries []space.Entry) (FactList, error) {
	entries = slices.DeleteFunc(entries, func(e space.Entry) bool { return facts.Hidden(string(e.Path)) })
	n := min(len(entries), maxFacts)
	out := FactList{Facts: make([]MemoryFact, n), Left: len(entries) - n}
	for i, e := range entries[:n] {
		var err error
		if out.Facts[i], err = v.ReadFact(ctx, e); err != nil {
			return FactList{}, err
		}
	}
	return out, nil
}

// notFacts returns the files under memory/ that commits wrote and that are not valid facts,
// sorted by path. It checks the first maxCheckedFacts files. If a file cannot be read, notFacts
// only logs the error, because the files are already saved.
func (v View) notFacts(ctx context.Context, commits []space.Commit) []MemoryFact {
	newest := map[space.Path]space.FileChange{}
	for _, c := range commits {
		for _, f := range c.Files {
			if facts.Under(string(f.Path)) && !facts.Hidden(string(f.Path)) {
				newest[f.Path] = f
			}
		}
	}
	paths := slices.Sorted(maps.Keys(newest))
	var out []MemoryFact
	for _, p := range paths[:min(len(paths), maxCheckedFacts)] {
		c := newest[p]
		if c.Status == space.Deleted {
			continue
		}
		f, err := v.ReadFact(context.WithoutCancel(ctx), space.Entry{Path: p, Blob: c.New, Mode: c.NewMode, Size: c.Size})
		if err != nil {
			v.s.log.Error("check the facts that were written", "err", err)
			return nil
		}
		if f.Problem != "" {
			out = append(out, f)
		}
	}
	return out
}

// ListFactsInput names a space.
type ListFactsInput struct {
	Space SpaceRef `json:"space"`
}

// FactList lists the memory of a space.
type FactList struct {
	Facts []MemoryFact `json:"facts"`
	// Left counts the files that are not listed, because there are too many.
	Left int `json:"left,omitempty"`
}

// ListFacts lists the facts of a space and the files under memory/ that are not valid
// facts, sorted by path. It includes expired facts.
func (s *Service) ListFacts(ctx context.Context, a Actor, in ListFactsInput) (FactList, error) {
	v, err := s.open(ctx, a, "ListFacts", in.Space)
	if err != nil {
		return FactList{}, err
	}
	at, err := v.Head(ctx)
	if err != nil {
		return FactList{}, err
	}
	return v.Memory(ctx, at)
}

// factFiles are the files under memory/.
type factFiles struct {
	all    []space.Entry
	byPath map[space.Path]space.Entry
	byName map[string][]space.Entry // files by the name of the fact, as Remember writes it
}

func (v View) factFiles(ctx context.Context, at space.CommitID) (factFiles, error) {
	entries, err := v.Files(ctx, at, facts.Dir)
	out := factFiles{all: entries, byPath: map[space.Path]space.Entry{}, byName: map[string][]space.Entry{}}
	for _, e := range entries {
		out.byPath[e.Path] = e
		if kind, key, ok := facts.Place(string(e.Path)); ok {
			name := factWritten(kind, key)
			out.byName[name] = append(out.byName[name], e)
		}
	}
	return out, err
}

// named returns the file of the fact with exactly this name. If there is none, it returns the
// files whose names Remember would write in the same way: "Window seat" names window-seat.
func (x factFiles) named(kind, key string) []space.Entry {
	if e, ok := x.byPath[space.Path(facts.Path(kind, key))]; ok {
		return []space.Entry{e}
	}
	return x.byName[factWritten(kind, key)]
}

// after returns the files after a commit whose parent has the files of x.
func (x factFiles) after(c space.Commit) []space.Entry {
	out := slices.Clone(x.all)
	for _, f := range c.Files {
		now := space.Entry{Path: f.Path, Blob: f.New, Mode: f.NewMode, Size: f.Size}
		if i := slices.IndexFunc(out, func(e space.Entry) bool { return e.Path == f.Path }); i >= 0 {
			out[i] = now
		} else {
			out = append(out, now)
		}
	}
	return out
}

// factWritten returns a name as Remember writes it.
func factWritten(kind, key string) string {
	kind, _ = facts.Name(kind)
	key, _ = facts.Name(key)
	return kind + "/" + key
}

// factNames lists the facts of changes, for a commit's message.
func factNames(changes []space.Change) string {
	const shown = 5
	var names []string
	for _, c := range changes[:min(shown, len(changes))] {
		kind, key, ok := facts.Place(c.Path)
		if ok {
			names = append(names, kind+"/"+key)
		} else {
			names = append(names, c.Path)
		}
	}
	out := strings.Join(names, ", ")
	if more := len(changes) - len(names); more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}
