package service

import (
	"context"
	"maps"
	"slices"
	"strings"

	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// ForgetInput names facts to remove: by their names, or by words that they contain.
type ForgetInput struct {
	Space SpaceRef `json:"space"`
	// Keys are names of facts, as type/key.
	Keys []string `json:"keys,omitempty"`
	// Paths means that keys can also be paths of files under memory/.
	Paths bool `json:"paths,omitempty"`
	// Base is the etag that the fact must have. It requires exactly one key. An empty Base
	// accepts every version.
	Base space.BlobID `json:"base,omitempty"`
	// Query selects the facts whose name and value together contain all its words.
	Query string `json:"query,omitempty"`
}

// Forgotten is the result of Forget.
type Forgotten struct {
	// Commit is empty if nothing changed. Its parent still has the facts.
	Commit  space.CommitID `json:"commit,omitempty"`
	Removed []MemoryFact   `json:"removed"`
	Missing []string       `json:"missing,omitempty"` // keys without a fact
}

// Forget removes facts in one commit. A query that matches more than maxForgotten facts
// removes none.
func (s *Service) Forget(ctx context.Context, a Actor, in ForgetInput) (Forgotten, error) {
	v, err := s.open(ctx, a, "Forget", in.Space)
	if err != nil {
		return Forgotten{}, err
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return Forgotten{}, err
	}
	in.Query = strings.TrimSpace(in.Query)
	switch n := len(in.Keys); {
	case (n > 0) == (in.Query != ""):
		return Forgotten{}, fault.New(fault.Invalid, "Name the facts by keys, such as preference/tea, or by a query. Give one of the two.")
	case in.Base != "" && n != 1:
		return Forgotten{}, fault.New(fault.Invalid, "An etag needs one key.")
	case n > MaxFactsAtOnce:
		return Forgotten{}, fault.New(fault.Invalid, "Name at most %d facts.", MaxFactsAtOnce)
	}
	if in.Base != "" {
		return v.forget(ctx, who, in)
	}
	return onNewest(func() (Forgotten, error) { return v.forget(ctx, who, in) })
}

func (v View) forget(ctx context.Context, who Actor, in ForgetInput) (Forgotten, error) {
	at, err := v.Head(ctx)
	if err != nil {
		return Forgotten{}, err
	}
	out := Forgotten{Removed: []MemoryFact{}}
	if in.Query != "" {
		out.Removed, err = v.factsWith(ctx, at, facts.WordsOf(in.Query))
	} else {
		out.Removed, out.Missing, err = v.factsNamed(ctx, at, in)
	}
	if err != nil || len(out.Removed) == 0 {
		return out, err
	}
	if in.Base != "" && out.Removed[0].Etag != in.Base {
		return Forgotten{}, fault.New(fault.Conflict, "The fact has changed since it was read. Read it again.")
	}
	changes := make([]space.Change, len(out.Removed))
	for i, f := range out.Removed {
		changes[i] = space.Change{Path: string(f.Path), Op: space.Delete, Base: f.Etag}
	}
	c, err := v.s.commitAll(ctx, who, v.ID, changes, who.commitMeta("forget", "Forget "+factNames(changes)))
	if err != nil {
		return Forgotten{}, err
	}
	if c.Changed {
		out.Commit = c.ID
	}
	return out, nil
}

// factsWith returns the facts that have all words of a query.
func (v View) factsWith(ctx context.Context, at space.CommitID, query facts.Words) ([]MemoryFact, error) {
	all, err := v.Memory(ctx, at)
	if err != nil {
		return nil, err
	}
	if all.Left > 0 {
		return nil, fault.New(fault.TooLarge, "The memory has more than %d files, which is too many for a query. Name the facts by keys.", maxFacts)
	}
	var found []MemoryFact
	for _, f := range all.Facts {
		value := f.Value
		if f.Cut {
			doc, err := v.ReadBlob(ctx, f.Etag)
			if err != nil {
				return nil, err
			}
			value = facts.Whole(doc)
		}
		if f.Problem == "" && facts.Contains(f.Name()+" "+value, query) {
			found = append(found, f)
		}
	}
	if n := len(found); n > maxForgotten {
		return nil, fault.New(fault.Invalid, "The query matches %d facts, and one query can remove %d. Use more words, or name the facts by keys.", n, maxForgotten)
	}
	return found, nil
}

// factsNamed returns the facts that keys name, sorted by path, and the keys that name none.
func (v View) factsNamed(ctx context.Context, at space.CommitID, in ForgetInput) (found []MemoryFact, missing []string, err error) {
	files, err := v.factFiles(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	chosen := map[space.Path]space.Entry{}
	for _, k := range in.Keys {
		name := strings.TrimSpace(k)
		kind, key, _ := strings.Cut(name, "/")
		list := files.named(kind, key)
		if e, ok := files.byPath[space.Path(name)]; ok && in.Paths && list == nil {
			list = []space.Entry{e}
		}
		if list == nil {
			missing = append(missing, k)
		}
		for _, e := range list {
			chosen[e.Path] = e
		}
	}
	for _, p := range slices.Sorted(maps.Keys(chosen)) {
		f, err := v.ReadFact(ctx, chosen[p])
		if err != nil {
			return nil, nil, err
		}
		found = append(found, f)
	}
	return found, missing, nil
}
