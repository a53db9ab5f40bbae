package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"satchel/internal/bytesize"
	"satchel/internal/exports"
	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// ImportMemoryInput is a file that another program exported.
type ImportMemoryInput struct {
	Space SpaceRef
	// Name is the name of the file. It can begin with the name of the file's folder.
	Name string
	// Format is one of exports.Formats. Empty means that the content decides.
	Format string
	// DryRun reports what the import would do, and changes nothing.
	DryRun bool
	Stream io.Reader
}

// ImportedMemory is the result of ImportMemory and of ImportFolder. Its JSON is part of the
// command line's contract.
type ImportedMemory struct {
	Format  string          `json:"format"`
	DryRun  bool            `json:"dry_run"`
	Commit  space.CommitID  `json:"commit,omitempty"` // empty if nothing changed
	Pages   ImportCounts    `json:"pages"`
	Facts   ImportCounts    `json:"facts"`
	Skipped []ImportNote    `json:"skipped,omitempty"`
	Left    int             `json:"left,omitempty"` // number of skipped parts that are not listed
	Warning []space.Warning `json:"warnings,omitempty"`
	// Paths are the paths of all files that are added or replaced.
	Paths []string `json:"-"`
}

// ImportCounts counts pages or facts by what the import does with them.
type ImportCounts struct {
	Added     int `json:"added"`
	Replaced  int `json:"replaced"`
	Unchanged int `json:"unchanged"`
	// First lists the first pages or facts that are added or replaced.
	First []ImportedItem `json:"first,omitempty"`
}

// ImportedItem is a page with its name in the source, or a fact with its value.
type ImportedItem struct {
	Path string `json:"path"`
	Name string `json:"name"`
}

const (
	maxFirst          = 10  // pages, and facts, that a result lists
	maxSkipped        = 100 // skipped parts that a result lists
	maxImportsAtOnce  = 2   // running imports of all users
	maxImportsWaiting = 4   // waiting imports of one user
)

// ImportMemory imports an export of another program in one commit. It replaces the pages and
// facts of an earlier import, except those that were changed since. If it fails, it changes
// nothing.
func (s *Service) ImportMemory(ctx context.Context, a Actor, in ImportMemoryInput) (ImportedMemory, error) {
	v, err := s.open(ctx, a, "ImportMemory", in.Space)
	if err != nil {
		return ImportedMemory{}, err
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return ImportedMemory{}, err
	}
	end, err := s.importSlot(ctx, who.user)
	if err != nil {
		return ImportedMemory{}, err
	}
	defer end()
	b, err := readExport(ctx, s.o.Imports.Dir, in)
	if ctx.Err() != nil {
		return ImportedMemory{}, fault.Wrap(ctx.Err(), fault.Canceled, "Interrupted.")
	}
	if err != nil {
		return ImportedMemory{}, err
	}
	return onNewest(func() (ImportedMemory, error) { return v.importMemory(ctx, who, in, b) })
}

// importSlot waits until an import of the user may run. The caller must call end after the
// import. Each import holds all of its files in memory, so few imports run at once. Only one
// import of each user runs, so that one user alone does not delay others.
func (s *Service) importSlot(ctx context.Context, id space.UserID) (end func(), err error) {
	leave, err := s.userImports.take(ctx, id)
	if err == nil {
		select {
		case s.importSlots <- struct{}{}:
			return func() { <-s.importSlots; leave() }, nil
		case <-ctx.Done():
			leave()
		}
	}
	if ctx.Err() != nil {
		err = fault.Wrap(ctx.Err(), fault.Canceled, "Interrupted.")
	}
	return nil, err
}

// readExport reads a stream through a temporary file in dir, because the directory of a zip
// archive is at its end. When ctx ends, readExport returns early with an error.
func readExport(ctx context.Context, dir string, in ImportMemoryInput) (b exports.Bundle, err error) {
	limits := exports.Limits{}.WithDefaults()
	f, err := os.CreateTemp(dir, importPrefix) // removed at the next start if the process is killed
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	size, err := io.Copy(f, io.LimitReader(in.Stream, limits.Archive+1))
	switch {
	case err != nil:
		return b, fault.Wrap(err, fault.Unavailable, "The file did not arrive whole. Nothing was imported.")
	case size > limits.Archive:
		return b, fault.New(fault.TooLarge, "The file is larger than the %s that an import may have.", bytesize.Text(limits.Archive))
	}
	return exports.Read(in.Name, in.Format, cancelableFile{ctx, f}, size, limits)
}

// cancelableFile is a file that can be read until ctx ends.
type cancelableFile struct {
	ctx context.Context
	io.ReaderAt
}

func (f cancelableFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.ReaderAt.ReadAt(p, off)
}

// importPlan is what an import would change.
type importPlan struct {
	changes []space.Change
	items   map[string]plannedItem // by path
}

type plannedItem struct {
	counts *ImportCounts
	name   string
	added  bool
}

func (p *importPlan) add(c space.Change, counts *ImportCounts, name string) {
	p.changes = append(p.changes, c)
	p.items[c.Path] = plannedItem{counts, name, c.Base == ""}
}

func (v View) importMemory(ctx context.Context, who Actor, in ImportMemoryInput, b exports.Bundle) (ImportedMemory, error) {
	out := ImportedMemory{Format: b.Format, DryRun: in.DryRun, Left: b.Left}
	for _, s := range b.Skipped {
		out.skip(s.Name, s.Why)
	}
	at, err := v.Head(ctx)
	if err != nil {
		return out, err
	}
	plan := importPlan{items: map[string]plannedItem{}}
	if err := v.planPages(ctx, at, b, &plan, &out); err != nil {
		return out, err
	}
	if err := v.planFacts(ctx, at, b, &plan, &out); err != nil {
		return out, err
	}
	var c space.Commit
	if len(plan.changes) > 0 && !in.DryRun {
		meta := who.commitMeta(ToolImport, "Import "+oneLine(path.Base(in.Name)))
		c, err = v.s.git.Commit(ctx, v.ID, space.ChangeSet{Changes: plan.changes, Policy: space.RefuseStale}, meta)
		if err != nil {
			return ImportedMemory{}, err
		}
	}
	plan.report(c, &out)
	return out, nil
}

// report adds the result of the plan's commit to out. c is zero if nothing was committed.
func (p *importPlan) report(c space.Commit, out *ImportedMemory) {
	if c.Changed {
		out.Commit, out.Warning = c.ID, append(out.Warning, c.Warnings...)
	}
	refused := map[string]bool{}
	for _, r := range c.Rejected {
		if r.Path == space.CommentPath { // only the commit message was refused; the files are saved
			out.Warning = append(out.Warning, space.Warning{Path: r.Path, Why: r.Why})
			continue
		}
		refused[r.Path] = true
		out.skip(r.Path, r.Why)
	}
	for _, c := range p.changes {
		if !refused[c.Path] {
			p.items[c.Path].count(c.Path)
			out.Paths = append(out.Paths, c.Path)
		}
	}
}

func (i plannedItem) count(at string) {
	if i.added {
		i.counts.Added++
	} else {
		i.counts.Replaced++
	}
	if len(i.counts.First) < maxFirst {
		i.counts.First = append(i.counts.First, ImportedItem{at, i.name})
	}
}

func (m *ImportedMemory) skip(name, why string) {
	if len(m.Skipped) == maxSkipped {
		m.Left++
		return
	}
	m.Skipped = append(m.Skipped, ImportNote{name, why})
}

// planPages compares the pages of an import with those of the space.
func (v View) planPages(ctx context.Context, at space.CommitID, b exports.Bundle, plan *importPlan, out *ImportedMemory) error {
	if len(b.Pages) == 0 {
		return nil
	}
	files, err := v.Files(ctx, at, "knowledge")
	if fault.CodeOf(err) == fault.NotFound {
		err = nil
	}
	if err != nil {
		return err
	}
	there := map[string]space.Entry{}
	for _, e := range files {
		there[string(e.Path)] = e
	}
	for _, p := range b.Pages {
		c := space.Change{Path: p.Path, Content: p.Content}
		if e, ok := there[p.Path]; ok {
			now, err := v.ReadBlob(ctx, e.Blob)
			if err != nil {
				return err
			}
			switch {
			case string(now) == string(p.Content):
				out.Pages.Unchanged++
				continue
			case !exports.Untouched(now):
				out.skip(p.Name, fmt.Sprintf("The space has another version at %s, which stays.", p.Path))
				continue
			}
			c.Mode, c.Base, c.BaseMode = e.Mode, e.Blob, e.Mode
		}
		plan.add(c, &out.Pages, p.Name)
	}
	return nil
}

// planFacts applies the rules of the memory to the facts of an import.
func (v View) planFacts(ctx context.Context, at space.CommitID, b exports.Bundle, plan *importPlan, out *ImportedMemory) error {
	if len(b.Facts) == 0 {
		return nil
	}
	files, err := v.factFiles(ctx, at)
	if err != nil {
		return err
	}
	for _, st := range b.Facts {
		st, mistakes := st.Check(v.s.today())
		if len(mistakes) > 0 {
			out.skip(st.Value, mistakes[0].Text)
			continue
		}
		f, err := v.factFile(ctx, at, files, st)
		if err != nil {
			return err
		}
		if f.why != "" {
			out.skip(st.Name(), f.why)
			continue
		}
		doc, outcome := facts.MergeImported(f.doc, st, facts.Origin{Client: b.Format, Tool: ToolImport}, v.s.o.Now())
		switch outcome {
		case facts.Unchanged:
			out.Facts.Unchanged++
		case facts.Added, facts.Replaced:
			plan.add(space.Change{Path: string(f.entry.Path), Content: doc, Mode: f.entry.Mode, Base: f.entry.Blob, BaseMode: f.entry.Mode}, &out.Facts, st.Value)
		default:
			out.skip(st.Name(), "The space has another value, which stays.")
		}
	}
	return nil
}
