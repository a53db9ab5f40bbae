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
	maxFacts        = 20_000    // files that are read for one list
	maxCheckedFacts = 200       // files of a command that are checked
	maxForgotten    = 20        // facts that one query forgets
	maxFactBytes    = 256 << 10 // of a file that is read as a fact
	maxCachedFacts  = 20_000
	maxAlike        = 3   // facts that an answer names beside a new one
	maxQuoted       = 200 // characters of a value in an explanation
	maxAttempts     = 100 // each after another client has changed one of the files
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

// Name returns the type and the key, as type/key, or the path of a file elsewhere.
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
		out.Confirmed = "" // a wrong day does not put the fact first
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
	entries = slices.DeleteFunc(entries, func(e space.Entry) bool { return facts.Hidden(string(e.Path)) })
	n := min(len(entries), maxFacts)
	out := FactList{Facts: make([]MemoryFact, n), Left: len(entries) - n}
	for i, e := range entries[:n] {
		if out.Facts[i], err = v.ReadFact(ctx, e); err != nil {
			return FactList{}, err
		}
	}
	return out, nil
}

// notFacts returns the files under memory/ that commits wrote and that are not valid facts,
// sorted by path. It checks the first maxCheckedFacts files.
func (v View) notFacts(ctx context.Context, commits []space.Commit) ([]MemoryFact, error) {
	newest := map[space.Path]space.FileChange{}
	for _, c := range commits {
		for _, f := range c.Files {
			if strings.HasPrefix(string(f.Path), facts.Dir+"/") && !facts.Hidden(string(f.Path)) {
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
		f, err := v.ReadFact(ctx, space.Entry{Path: p, Blob: c.New, Mode: c.NewMode, Size: c.Size})
		if err != nil {
			return nil, err
		}
		if f.Problem != "" {
			out = append(out, f)
		}
	}
	return out, nil
}

// onNewest runs f until it does not fail with a fault.Conflict, because f changes the newest
// commit and another client may change the same files meanwhile.
func onNewest[T any](f func() (T, error)) (T, error) {
	for range maxAttempts {
		out, err := f()
		if fault.CodeOf(err) != fault.Conflict {
			return out, err
		}
	}
	var none T
	return none, fault.New(fault.Conflict, "Other clients keep changing the same files. Try again.")
}

// ListFactsInput names a space.
type ListFactsInput struct {
	Space SpaceRef `json:"space"`
}

// FactList lists the memory of a space.
type FactList struct {
	Facts []MemoryFact `json:"facts"`
	// Left is the number of files that are not listed, because there are too many.
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

// RememberInput holds facts to save.
type RememberInput struct {
	Space SpaceRef          `json:"space"`
	Facts []facts.Statement `json:"facts"`
}

// Remembered is the result of Remember.
type Remembered struct {
	// Commit is empty if nothing changed.
	Commit space.CommitID   `json:"commit,omitempty"`
	Facts  []RememberedFact `json:"facts"`
	// Warnings concern files that were saved.
	Warnings []space.Warning `json:"warnings,omitempty"`
}

// RememberedFact is the result of one statement.
type RememberedFact struct {
	Type    string        `json:"type"`
	Key     string        `json:"key"`
	Path    space.Path    `json:"path"`
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

// Remember saves facts in one commit, by the rules of facts.Merge. If a statement is
// invalid, Remember saves nothing, and the error names every mistake.
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
		var mistakes []facts.Mistake
		stated[i], mistakes = f.Check(s.today())
		if _, err := space.ParsePath(facts.Path(stated[i].Type, stated[i].Key)); err != nil && len(mistakes) == 0 {
			mistakes = []facts.Mistake{{Text: fault.PublicOf(err)}}
		}
		for j := range i {
			if stated[j].Name() == stated[i].Name() && len(mistakes) == 0 {
				mistakes = []facts.Mistake{{Text: fmt.Sprintf("It has the same type and key as facts[%d].", j)}}
			}
		}
		for _, m := range mistakes {
			all = append(all, fmt.Sprintf("facts[%d]: %s", i, m.Text))
		}
	}
	if len(all) > 0 {
		return Remembered{}, fault.New(fault.Invalid, "Nothing was saved.\n%s", strings.Join(all, "\n"))
	}
	return onNewest(func() (Remembered, error) { return v.remember(ctx, who, stated) })
}

// factFile is the file of a fact while a statement is applied to it.
type factFile struct {
	entry    space.Entry // its Blob is empty if there is no file
	before   *MemoryFact
	was, doc []byte
	why      string // why the file cannot be changed; empty if it can
}

// remember applies statements to the newest commit. It returns a fault.Conflict if one of
// the files changes meanwhile, because Commit compares each with its base under the lock of
// the space.
func (v View) remember(ctx context.Context, who Actor, stated []facts.Statement) (Remembered, error) {
	at, err := v.Head(ctx)
	if err != nil {
		return Remembered{}, err
	}
	files, err := v.factFiles(ctx, at)
	if err != nil {
		return Remembered{}, err
	}
	out := Remembered{Facts: make([]RememberedFact, len(stated))}
	var changes []space.Change
	for i, st := range stated {
		f, err := v.factFile(ctx, at, files, st)
		if err != nil {
			return Remembered{}, err
		}
		r := RememberedFact{Type: st.Type, Key: st.Key, Path: f.entry.Path, Value: st.Value, Before: f.before, Outcome: facts.Invalid, Why: f.why}
		switch {
		case st.Base == facts.NoFact && f.before != nil:
			r.Outcome, r.Why = facts.Stale, "A fact with this type and key already exists."
		case st.Base != "" && st.Base != facts.NoFact && st.Base != string(f.entry.Blob):
			r.Outcome, r.Why = facts.Stale, "The fact has changed since it was read. Read it again."
		case f.why == "":
			f.doc, r.Outcome = facts.Merge(f.doc, st, who.memoryClient(), v.s.o.Now())
			r.Why = whyKept(r, f)
		}
		out.Facts[i] = r
		if string(f.doc) != string(f.was) {
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
			if x.Path == string(r.Path) {
				r.Outcome, r.Why = facts.Refused, x.Why
			}
		}
	}
	if err := v.findAlike(ctx, c.ID, out.Facts); err != nil {
		// The facts are saved, so that is the answer.
		v.s.log.Error("compare new facts with others", "err", err)
	}
	return out, nil
}

// factFiles are the files under memory/.
type factFiles struct {
	byPath map[space.Path]space.Entry
	byName map[string][]space.Entry // by the name of the fact as Remember writes it
}

func (v View) factFiles(ctx context.Context, at space.CommitID) (factFiles, error) {
	entries, err := v.Files(ctx, at, facts.Dir)
	out := factFiles{map[space.Path]space.Entry{}, map[string][]space.Entry{}}
	for _, e := range entries {
		out.byPath[e.Path] = e
		if kind, key, ok := facts.Place(string(e.Path)); ok {
			name := factWritten(kind, key)
			out.byName[name] = append(out.byName[name], e)
		}
	}
	return out, err
}

// named returns the file of the fact with exactly this name, or else those of facts with the
// same name as Remember writes it: "Window seat" names window-seat.
func (x factFiles) named(kind, key string) []space.Entry {
	if e, ok := x.byPath[space.Path(facts.Path(kind, key))]; ok {
		return []space.Entry{e}
	}
	return x.byName[factWritten(kind, key)]
}

// factWritten returns a name as Remember writes it.
func factWritten(kind, key string) string {
	kind, _ = facts.Name(kind)
	key, _ = facts.Name(key)
	return kind + "/" + key
}

// factFile reads the file of a statement's fact.
func (v View) factFile(ctx context.Context, at space.CommitID, files factFiles, st facts.Statement) (*factFile, error) {
	p := space.Path(facts.Path(st.Type, st.Key))
	if there := files.named(st.Type, st.Key); len(there) > 0 {
		p = there[0].Path
	}
	e, ok, err := v.Find(ctx, at, p)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		out := &factFile{entry: space.Entry{Path: p}}
		above, err := v.FileAbove(ctx, at, p)
		if above != "" {
			out.why = fmt.Sprintf("%s is a file. A fact needs a directory there.", above)
		}
		return out, err
	case e.Dir:
		return &factFile{entry: e, why: fmt.Sprintf("%s is a directory.", p)}, nil
	}
	f, err := v.ReadFact(ctx, e)
	if err != nil {
		return nil, err
	}
	out := &factFile{entry: e, before: &f}
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

// whyKept says why a statement did not change its fact, and how to override that. It is
// empty if the statement changed the fact.
func whyKept(r RememberedFact, f *factFile) string {
	switch r.Outcome {
	case facts.Invalid: // its front matter has a form that Set cannot change
		return fmt.Sprintf("%s cannot be changed here. Fix the file, or forget it first.", f.entry.Path)
	case facts.Kept:
	default:
		return ""
	}
	now := facts.Read(f.doc)
	value := []rune(strings.TrimSpace(now.Value))
	if len(value) > maxQuoted {
		value = append(value[:maxQuoted], '…')
	}
	on := ""
	if now.Confirmed != "" {
		on = " on " + now.Confirmed
	}
	if now.Stated() {
		return fmt.Sprintf("The user said %q%s. Set explicit to true if the user has corrected it.", string(value), on)
	}
	sure := ""
	if now.HasSure {
		sure = fmt.Sprintf(" with confidence %v", now.Sure)
	}
	return fmt.Sprintf("%q was saved%s%s. State a confidence that is at least as high, or set explicit to true if the user said it.", string(value), on, sure)
}

// findAlike adds the facts that new and changed facts may repeat or contradict.
func (v View) findAlike(ctx context.Context, at space.CommitID, changed []RememberedFact) error {
	all, err := v.Memory(ctx, at)
	if err != nil {
		return err
	}
	said := make([]facts.Words, len(changed))
	for i, r := range changed {
		if r.Outcome == facts.Added || r.Outcome == facts.Replaced {
			said[i] = facts.WordsOf(r.Value)
		}
	}
	for _, f := range all.Facts {
		if f.Problem != "" || f.Expired {
			continue
		}
		words := facts.WordsOf(f.Value)
		for i := range changed {
			r := &changed[i]
			if said[i] == nil || f.Path == r.Path || len(r.Alike) == maxAlike {
				continue
			}
			if strings.EqualFold(f.Key, r.Key) || words.Similar(said[i]) {
				r.Alike = append(r.Alike, f)
			}
		}
	}
	return nil
}

// memoryClient returns the name under which a fact records the actor.
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

// ForgetInput names facts to remove: by their names, or by words that they contain.
type ForgetInput struct {
	Space SpaceRef `json:"space"`
	// Keys are names of facts, as type/key.
	Keys []string `json:"keys,omitempty"`
	// Paths means that keys can also be paths of files under memory/.
	Paths bool `json:"paths,omitempty"`
	// Base is the etag that the only key's fact must have; empty: any.
	Base space.BlobID `json:"base,omitempty"`
	// Query selects the facts with all its words in their names and values.
	Query string `json:"query,omitempty"`
}

// Forgotten is the result of Forget.
type Forgotten struct {
	// Commit is empty if nothing changed. The commit before it still has the facts.
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

// factsNamed returns the facts that keys name, sorted by path, and the keys without one.
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
