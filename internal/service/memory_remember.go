package service

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/space"
)

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
	// Before is the fact before the statement. It is nil if there was no fact.
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
// the files changes meanwhile, because Commit compares each file with its base under the
// lock of the space.
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
	stating := map[space.Path]int{}
	for i, st := range stated {
		f, err := v.factFile(ctx, at, files, st)
		if err != nil {
			return Remembered{}, err
		}
		// Two spellings of a name can mean the same file.
		if j, ok := stating[f.entry.Path]; ok {
			return Remembered{}, fault.New(fault.Invalid, "Nothing was saved.\nfacts[%d]: It is the same fact as facts[%d].", i, j)
		}
		stating[f.entry.Path] = i
		r := RememberedFact{Type: st.Type, Key: st.Key, Path: f.entry.Path, Value: st.Value, Before: f.before, Outcome: facts.Invalid, Why: f.why}
		switch {
		case st.Base == facts.NoFact && f.before != nil:
			r.Outcome, r.Why = facts.Stale, "A fact with this type and key already exists."
		case st.Base != "" && st.Base != facts.NoFact && st.Base != string(f.entry.Blob):
			r.Outcome, r.Why = facts.Stale, "The fact has changed since it was read. Read it again."
		case f.why == "" && st.TooLong(f.doc) != "":
			r.Outcome, r.Why = facts.Refused, st.TooLong(f.doc)
		case f.why == "":
			f.doc, r.Outcome = facts.Merge(f.doc, st, who.memoryOrigin(), v.s.o.Now())
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
	if err := v.findAlike(ctx, at, files, c, out.Facts); err != nil {
		// The facts are saved, so the error is only logged.
		v.s.log.Error("compare new facts with others", "err", err)
	}
	return out, nil
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

// whyKept says why a statement did not change its fact, and how to change the fact anyway. It
// returns "" if the statement changed the fact.
func whyKept(r RememberedFact, f *factFile) string {
	switch r.Outcome {
	case facts.Invalid: // the front matter of the file has a form that facts.Set cannot change
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

// findAlike adds to new and changed facts the other facts that they may repeat or contradict.
// files are the files under memory/ at the commit at, before the commit c.
func (v View) findAlike(ctx context.Context, at space.CommitID, files factFiles, c space.Commit, changed []RememberedFact) error {
	list := files.after(c)
	if c.Changed && c.Parent != at { // another client has committed meanwhile
		var err error
		if list, err = v.Files(ctx, c.ID, facts.Dir); err != nil {
			return err
		}
	}
	all, err := v.readFacts(ctx, list)
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
		var words facts.Words // the words of f, once they are needed
		for i := range changed {
			r := &changed[i]
			if said[i] == nil || f.Path == r.Path || len(r.Alike) == maxAlike {
				continue
			}
			if words == nil {
				words = facts.WordsOf(f.Value)
			}
			if strings.EqualFold(f.Key, r.Key) || words.Similar(said[i]) {
				r.Alike = append(r.Alike, f)
			}
		}
	}
	return nil
}

// memoryOrigin returns the origin of the facts that the actor saves.
func (a Actor) memoryOrigin() facts.Origin {
	o := facts.Origin{Client: cmp.Or(a.label, a.via), Tool: "remember"}
	switch a.kind {
	case person:
		o = facts.Origin{Client: space.ClientBrowser, Tool: facts.ToolPages}
	case operator:
		o.Tool = facts.ToolCommand
	}
	return o
}
