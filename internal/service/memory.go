package service

import (
	"cmp"
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
	maxForgotten     = 20        // that one query forgets
	maxFactBytes     = 256 << 10 // of a file that is read as a fact
	maxCachedFacts   = 16384
	maxAlike         = 3   // facts that an answer names beside a new one
	maxMemoryRetries = 100 // each after another client has changed one of the facts
)

// MemoryFact is a fact in the memory of a space. It can also be a file under memory/ that
// is not a valid fact.
type MemoryFact struct {
	Path          space.Path `json:"path"`
	Type          string     `json:"type,omitempty"`
	Key           string     `json:"key,omitempty"`
	Value         string     `json:"value,omitempty"`
	Source        string     `json:"source,omitempty"`
	Confidence    *float64   `json:"confidence,omitempty"`
	Client        string     `json:"client,omitempty"`
	FirstSeen     string     `json:"first_seen,omitempty"` // days, as YYYY-MM-DD
	LastConfirmed string     `json:"last_confirmed,omitempty"`
	Expires       string     `json:"expires,omitempty"`
	Expired       bool       `json:"expired,omitempty"`
	// Problem says why the file is not a valid fact. It is empty if it is one.
	Problem string       `json:"problem,omitempty"`
	Etag    space.BlobID `json:"etag"`
}

// Name returns the type and the key, as type/key, or the path of an invalid file.
func (f MemoryFact) Name() string {
	if f.Type == "" {
		return string(f.Path)
	}
	return f.Type + "/" + f.Key
}

// Stated reports whether the user said the fact.
func (f MemoryFact) Stated() bool { return facts.Fact{Source: f.Source}.Stated() }

func (s *Service) memoryFact(e space.Entry, f facts.Fact) MemoryFact {
	out := MemoryFact{
		Path: e.Path, Value: f.Value, Source: f.Source, Client: f.Client, FirstSeen: f.FirstSeen, LastConfirmed: f.Confirmed,
		Expires: f.Expires, Expired: f.Over(s.today()), Problem: f.Problem, Etag: e.Blob,
	}
	if f.HasSure {
		out.Confidence = &f.Sure
	}
	var ok bool
	if out.Type, out.Key, ok = facts.Place(string(e.Path)); !ok {
		out.Problem = facts.Misplaced
	}
	return out
}

func (s *Service) today() string { return s.o.Now().UTC().Format(time.DateOnly) }

// readFact reads the file of a fact.
func (v View) readFact(ctx context.Context, e space.Entry) (facts.Fact, error) {
	switch f, ok := v.s.facts.Get(e.Blob); {
	case e.Mode == space.Symlink:
		return facts.Fact{Problem: "It is a link."}, nil
	case e.Size > maxFactBytes:
		return facts.Fact{Problem: "It is too large for a fact."}, nil
	case ok:
		return f, nil
	}
	doc, err := v.ReadBlob(ctx, e.Blob)
	if fault.CodeOf(err) == fault.Damaged {
		return facts.Fact{Problem: fault.PublicOf(space.Damaged(e.Path, err))}, nil
	}
	if err != nil {
		return facts.Fact{}, err
	}
	f := facts.Read(doc)
	v.s.facts.Add(e.Blob, f)
	return f, nil
}

// memory lists the files under memory/, sorted by path.
func (v View) memory(ctx context.Context, at space.CommitID) ([]MemoryFact, error) {
	entries, err := v.Files(ctx, at, facts.Dir)
	if err != nil {
		return nil, err
	}
	out := make([]MemoryFact, 0, len(entries))
	for _, e := range entries {
		if facts.Hidden(string(e.Path)) {
			continue
		}
		f, err := v.readFact(ctx, e)
		if err != nil {
			return nil, err
		}
		out = append(out, v.s.memoryFact(e, f))
	}
	return out, nil
}

// notFacts returns the files under memory/ that commits wrote and that are not valid facts,
// sorted by path.
func (v View) notFacts(ctx context.Context, commits []space.Commit) ([]MemoryFact, error) {
	newest := map[space.Path]space.FileChange{}
	for _, c := range commits {
		for _, f := range c.Files {
			if strings.HasPrefix(string(f.Path), facts.Dir+"/") && !facts.Hidden(string(f.Path)) {
				newest[f.Path] = f
			}
		}
	}
	var out []MemoryFact
	for _, p := range slices.Sorted(maps.Keys(newest)) {
		c := newest[p]
		if c.Status == space.Deleted {
			continue
		}
		e := space.Entry{Path: p, Blob: c.New, Mode: c.NewMode, Size: c.Size}
		f, err := v.readFact(ctx, e)
		if err != nil {
			return nil, err
		}
		if known := v.s.memoryFact(e, f); known.Problem != "" {
			out = append(out, known)
		}
	}
	return out, nil
}

// ListFactsInput names a space.
type ListFactsInput struct {
	Space SpaceRef `json:"space"`
}

// ListFacts lists the facts of a space and the files under memory/ that are not valid
// facts, sorted by path. It includes expired facts.
func (s *Service) ListFacts(ctx context.Context, a Actor, in ListFactsInput) ([]MemoryFact, error) {
	v, err := s.open(ctx, a, "ListFacts", in.Space)
	if err != nil {
		return nil, err
	}
	at, err := v.Head(ctx)
	if err != nil {
		return nil, err
	}
	return v.memory(ctx, at)
}

// RememberInput holds facts to save.
type RememberInput struct {
	Space SpaceRef          `json:"space"`
	Facts []facts.Statement `json:"facts"`
}

// Remembered is what Remember did.
type Remembered struct {
	// Commit is empty if nothing changed.
	Commit space.CommitID   `json:"commit,omitempty"`
	Facts  []RememberedFact `json:"facts"`
	// Warnings concern files that were saved.
	Warnings []space.Warning `json:"warnings,omitempty"`
}

// RememberedFact is what happened to one statement.
type RememberedFact struct {
	Type    string        `json:"type"`
	Key     string        `json:"key"`
	Value   string        `json:"value"` // as stated
	Outcome facts.Outcome `json:"outcome"`
	// Before is the fact that was there. It is nil if there was none.
	Before *MemoryFact `json:"before,omitempty"`
	// Why says why the fact was not saved.
	Why string `json:"why,omitempty"`
	// Alike are other facts with the same key or a similar value. They can repeat or
	// contradict the new fact.
	Alike []MemoryFact `json:"alike,omitempty"`
}

// Name returns the type and the key, as type/key.
func (f RememberedFact) Name() string { return f.Type + "/" + f.Key }

// Remember saves facts in one commit, by the rules of facts.Merge. Invalid statements are
// an error that names them all, and nothing is saved.
func (s *Service) Remember(ctx context.Context, a Actor, in RememberInput) (Remembered, error) {
	v, err := s.open(ctx, a, "Remember", in.Space)
	if err != nil {
		return Remembered{}, err
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return Remembered{}, err
	}
	if n := len(in.Facts); n == 0 || n > MaxFactsAtOnce {
		return Remembered{}, fault.New(fault.Invalid, "Name 1 to %d facts.", MaxFactsAtOnce)
	}
	stated := make([]facts.Statement, len(in.Facts))
	var all []string
	for i, f := range in.Facts {
		var mistakes []string
		stated[i], mistakes = f.Check(s.today())
		if _, err := space.ParsePath(facts.Path(stated[i].Type, stated[i].Key)); err != nil && len(mistakes) == 0 {
			mistakes = []string{fault.PublicOf(err)}
		}
		for _, m := range mistakes {
			all = append(all, fmt.Sprintf("facts[%d]: %s", i, m))
		}
	}
	if len(all) > 0 {
		return Remembered{}, fault.New(fault.Invalid, "Nothing was saved.\n%s", strings.Join(all, "\n"))
	}
	for range maxMemoryRetries {
		out, err := v.remember(ctx, who, stated)
		if fault.CodeOf(err) != fault.Conflict {
			return out, err
		}
	}
	return Remembered{}, fault.New(fault.Conflict, "Other clients keep changing these facts. Try again.")
}

// factFile is the file of a fact while statements are applied to it.
type factFile struct {
	entry    space.Entry // its Blob is empty if there is no file
	before   *MemoryFact
	was, doc []byte
	why      string // the file cannot be a fact
}

// remember applies statements to the newest commit. It returns a fault.Conflict if one of
// the files changes meanwhile, because Commit compares each with its base under the lock of
// the space.
func (v View) remember(ctx context.Context, who Actor, stated []facts.Statement) (Remembered, error) {
	at, err := v.Head(ctx)
	if err != nil {
		return Remembered{}, err
	}
	files := map[string]*factFile{}
	out := Remembered{Facts: make([]RememberedFact, len(stated))}
	for i, st := range stated {
		f := files[st.Name()]
		if f == nil {
			if f, err = v.factFile(ctx, at, st); err != nil {
				return Remembered{}, err
			}
			files[st.Name()] = f
		}
		r := RememberedFact{Type: st.Type, Key: st.Key, Value: st.Value, Before: f.before, Outcome: facts.Invalid, Why: f.why}
		if f.why == "" {
			f.doc, r.Outcome = facts.Merge(f.doc, st, who.memoryClient(), v.s.o.Now())
		}
		r.Why = cmp.Or(r.Why, v.whyKept(r, f))
		out.Facts[i] = r
	}
	var changes []space.Change
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if f := files[name]; string(f.doc) != string(f.was) {
			changes = append(changes, space.Change{Path: string(f.entry.Path), Content: f.doc, Mode: f.entry.Mode, Base: f.entry.Blob, BaseMode: f.entry.Mode})
		}
	}
	if len(changes) == 0 {
		return out, nil
	}
	c, err := v.s.git.Commit(ctx, v.ID, space.ChangeSet{Changes: changes, Policy: space.RefuseStale}, who.commitMeta("remember", "Remember "+factNames(changes)))
	if err != nil {
		return Remembered{}, err
	}
	if c.Changed {
		out.Commit, out.Warnings = c.ID, c.Warnings
	}
	for i := range out.Facts {
		r := &out.Facts[i]
		for _, x := range c.Rejected {
			if x.Path == facts.Path(r.Type, r.Key) && (r.Outcome == facts.Added || r.Outcome == facts.Replaced || r.Outcome == facts.Confirmed) {
				r.Outcome, r.Why = facts.Refused, x.Why
			}
		}
	}
	return out, v.findAlike(ctx, c.ID, out.Facts)
}

// factFile reads the file of a statement's fact.
func (v View) factFile(ctx context.Context, at space.CommitID, st facts.Statement) (*factFile, error) {
	p := space.Path(facts.Path(st.Type, st.Key))
	e, ok, err := v.Find(ctx, at, p)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		up, ok, err := v.Find(ctx, at, space.Path(facts.Dir+"/"+st.Type))
		if err == nil && ok && !up.Dir {
			return &factFile{entry: space.Entry{Path: p}, why: fmt.Sprintf("%s is a file, so that no fact can be under it.", up.Path)}, nil
		}
		return &factFile{entry: space.Entry{Path: p}}, err
	case e.Dir:
		return &factFile{entry: e, why: fmt.Sprintf("%s is a directory.", p)}, nil
	}
	f, err := v.readFact(ctx, e)
	if err != nil {
		return nil, err
	}
	known := v.s.memoryFact(e, f)
	out := &factFile{entry: e, before: &known}
	if f.Problem != "" {
		out.why = fmt.Sprintf("%s is not a valid fact. %s Fix the file, or forget it first.", p, f.Problem)
		return out, nil
	}
	if out.was, err = v.ReadBlob(ctx, e.Blob); err != nil {
		return nil, err
	}
	out.doc = out.was
	return out, nil
}

// whyKept says why a statement did not change its fact, and how to override that.
func (v View) whyKept(r RememberedFact, f *factFile) string {
	switch r.Outcome {
	case facts.Invalid:
		return fmt.Sprintf("%s cannot be changed here. Fix the file, or forget it first.", f.entry.Path)
	case facts.Kept:
	default:
		return ""
	}
	now := v.s.memoryFact(f.entry, facts.Read(f.doc))
	on := ""
	if now.LastConfirmed != "" {
		on = " on " + now.LastConfirmed
	}
	if now.Stated() {
		return fmt.Sprintf("The user said %q%s. Set explicit to true if the user has corrected it.", now.Value, on)
	}
	sure := ""
	if now.Confidence != nil {
		sure = fmt.Sprintf(" with confidence %.2g", *now.Confidence)
	}
	return fmt.Sprintf("%q was saved%s%s. State a confidence that is at least as high, or set explicit to true if the user said it.", now.Value, on, sure)
}

// findAlike adds the facts that new and changed facts may repeat or contradict.
func (v View) findAlike(ctx context.Context, at space.CommitID, changed []RememberedFact) error {
	all, err := v.memory(ctx, at)
	if err != nil {
		return err
	}
	for i := range changed {
		r := &changed[i]
		if r.Outcome != facts.Added && r.Outcome != facts.Replaced {
			continue
		}
		for _, f := range all {
			if f.Problem != "" || f.Expired || f.Name() == r.Name() || len(r.Alike) == maxAlike {
				continue
			}
			if strings.EqualFold(f.Key, r.Key) || facts.Similar(f.Value, r.Value) {
				r.Alike = append(r.Alike, f)
			}
		}
	}
	return nil
}

// memoryClient returns how a fact names the actor who saved it.
func (a Actor) memoryClient() string {
	if a.kind == person {
		return "browser"
	}
	return cmp.Or(a.label, a.via)
}

// factNames lists the facts of changes in a commit's message.
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

// ForgetInput names facts to remove: by their keys, or by the words that they contain.
type ForgetInput struct {
	Space SpaceRef `json:"space"`
	// Keys are names of facts, as type/key, or paths of files under memory/.
	Keys []string `json:"keys,omitempty"`
	// Query selects the facts that contain all its words.
	Query string `json:"query,omitempty"`
}

// Forgotten is what Forget did.
type Forgotten struct {
	// Commit is empty if nothing changed. The commit before it still has the facts.
	Commit  space.CommitID `json:"commit,omitempty"`
	Removed []MemoryFact   `json:"removed"`
	Missing []string       `json:"missing,omitempty"` // keys without a fact
}

// Forget removes facts in one commit. A query that matches many facts removes none.
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
	case n > MaxFactsAtOnce:
		return Forgotten{}, fault.New(fault.Invalid, "Name at most %d facts.", MaxFactsAtOnce)
	}
	for range maxMemoryRetries {
		out, err := v.forget(ctx, who, in)
		if fault.CodeOf(err) != fault.Conflict {
			return out, err
		}
	}
	return Forgotten{}, fault.New(fault.Conflict, "Other clients keep changing these facts. Try again.")
}

func (v View) forget(ctx context.Context, who Actor, in ForgetInput) (Forgotten, error) {
	at, err := v.Head(ctx)
	if err != nil {
		return Forgotten{}, err
	}
	all, err := v.memory(ctx, at)
	if err != nil {
		return Forgotten{}, err
	}
	out := Forgotten{Removed: []MemoryFact{}}
	for _, f := range all {
		named := slices.ContainsFunc(in.Keys, func(k string) bool { return f.named(k) })
		if named || f.Problem == "" && facts.Matches(f.Type, f.Key, f.Value, in.Query) {
			out.Removed = append(out.Removed, f)
		}
	}
	for _, k := range in.Keys {
		if !slices.ContainsFunc(out.Removed, func(f MemoryFact) bool { return f.named(k) }) {
			out.Missing = append(out.Missing, k)
		}
	}
	if n := len(out.Removed); in.Query != "" && n > maxForgotten {
		return Forgotten{}, fault.New(fault.Invalid, "The query matches %d facts, and one query can remove %d. Use more words, or name the facts by keys.", n, maxForgotten)
	}
	if len(out.Removed) == 0 {
		return out, nil
	}
	changes := make([]space.Change, len(out.Removed))
	for i, f := range out.Removed {
		changes[i] = space.Change{Path: string(f.Path), Op: space.Delete, Base: f.Etag}
	}
	c, err := v.s.git.Commit(ctx, v.ID, space.ChangeSet{Changes: changes, Policy: space.RefuseStale}, who.commitMeta("forget", "Forget "+factNames(changes)))
	if err == nil {
		err = refusedFile(c)
	}
	if err != nil {
		return Forgotten{}, err
	}
	if c.Changed {
		out.Commit = c.ID
	}
	return out, nil
}

// named reports whether a key is the fact's name or its path.
func (f MemoryFact) named(key string) bool {
	key = strings.TrimSpace(key)
	return key == string(f.Path) || f.Type != "" && strings.EqualFold(key, f.Name())
}
