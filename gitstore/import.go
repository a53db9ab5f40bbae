package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/commits"
	"satchel/gitstore/merge"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// ImportSource is a source from which a space is filled: [FromTar] or [FromBundle].
type ImportSource interface {
	// begin opens the source.
	begin(ctx context.Context, s *Store, progress func(string)) (src importReader, err error)
}

// importReader is an open source.
type importReader interface {
	// files calls visit for every file, and refuse for every entry that cannot be a
	// file. A path can occur twice.
	files(ctx context.Context, visit func(importFile) error, refuse func(path string, err error)) error
	// Name describes the source in a few words, without secrets.
	Name() string
	// history returns the quarantined repository, or nil if the source has only files.
	history() *quarantine
	Close()
}

// importFile is one file of a source. Like a change, it is untrusted input.
type importFile struct {
	path string
	mode space.Mode
	size int64 // the size, as the source claims
	open func() (io.ReadCloser, error)
}

// ImportResult is the result of an import.
type ImportResult struct {
	Commit space.Commit // lists the changed files; Changed is false if nothing was new
	// History is true if the source's history became the space's.
	History bool
	Files   int   // number of files read from the source
	Bytes   int64 // total size of these files
	// Notes lists paths that were left out, removed, or kept although they break a
	// rule, with the reason. It has at most 1,000 entries.
	Notes []space.Rejection
	Noted int // number of all such paths, which may be more than Notes has
	// Replaced lists files that nobody had changed since the space was created, and
	// that the source's files replaced.
	Replaced []space.Path
}

const maxImportNotes = 1000

func (res *ImportResult) note(path string, err error) {
	if res.Noted++; len(res.Notes) < maxImportNotes {
		res.Notes = append(res.Notes, rejection(path, err))
	}
}

// Import fills a space from a source. If the space has only its first commit, the history
// of a git source becomes the space's history. A commit on top adds the files of the space
// that the history lacks. Otherwise, Import commits the source's files on head. In a space
// with only its first commit, they replace files of the same name. In any other space,
// they replace files that nobody has changed since the space was created. For other files
// that differ, Import keeps both versions. If progress is not nil, Import calls it with
// lines for people to read. After an error the space is unchanged.
func (s *Store) Import(ctx context.Context, id space.SpaceID, src ImportSource, m space.Meta, progress func(line string)) (ImportResult, error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return ImportResult{}, err
	}
	defer release()
	if progress == nil {
		progress = func(string) {}
	}
	r.unreached.RLock()
	defer r.unreached.RUnlock()
	check := func() error { return nil }
	if c, ok := src.(checkedSource); ok {
		check = c.check
	}
	in, err := src.begin(ctx, s, progress)
	if err != nil {
		return ImportResult{}, explainDisk(err)
	}
	defer in.Close()
	if m.Message == "" {
		m.Message = "Import " + in.Name()
	}
	warning, err := r.screenMessage(ctx, m.Message)
	if isFault(err) {
		m.Message, err = "Import", nil // a refused message does not stop the import
	}
	if err != nil {
		return ImportResult{}, err
	}
	res, err := r.importInto(ctx, in, m, check, progress)
	if err == nil && res.Commit.Changed && warning != "" && res.Commit.Message == m.Message {
		res.Commit.Warnings = append(res.Commit.Warnings, space.Warning{Path: space.CommentPath, Why: warning})
	}
	return res, err
}

// importInto adopts a source's history, or commits its files.
func (r *repo) importInto(ctx context.Context, in importReader, m space.Meta, check func() error, progress func(string)) (ImportResult, error) {
	if q := in.history(); q != nil {
		pristine, err := r.pristine(r.head.Load())
		if err != nil {
			return ImportResult{}, err
		}
		if pristine {
			res, err := r.adopt(ctx, q, m, check, progress)
			if !errors.Is(err, errNotPristine) {
				return res, err
			}
		}
	}
	return r.importFiles(ctx, in, m, check, progress)
}

// CheckedBefore returns a source like src. Import of that source calls check right before it
// changes the space. An error of check ends the import.
func CheckedBefore(src ImportSource, check func() error) ImportSource {
	return checkedSource{src, check}
}

type checkedSource struct {
	ImportSource
	check func() error
}

var errNotPristine = errors.New("the space has changed since its first commit")

// pristine reports whether a space has only its first commit.
func (r *repo) pristine(st *headState) (bool, error) {
	c, err := commits.Get(r.db, st.id)
	if err != nil {
		return false, r.internalf(err, "head")
	}
	return len(c.Parents) == 0, nil
}

// importFiles commits a source's files. It writes their content into a pack as it reads
// them, so that memory holds one file at a time. It locks the space only for the
// commit.
func (r *repo) importFiles(ctx context.Context, in importReader, m space.Meta, check func() error, progress func(string)) (res ImportResult, err error) {
	w, err := packfile.NewWriter(r.s.o.disk, r.db.PackDir())
	if err != nil {
		return res, r.internalf(err, "import")
	}
	defer w.Abort() // removes the files that Finish has not renamed
	lim := r.s.o.Limits
	var reqs []request
	at := map[string]int{}
	err = in.files(ctx, func(f importFile) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		q, data, err := r.readImport(ctx, f)
		if fault.CodeOf(err) == fault.Internal {
			return err
		}
		if err != nil {
			res.note(f.path, err)
			return nil
		}
		res.Files++
		res.Bytes += q.size
		if res.Files > lim.Files || res.Bytes > lim.Space {
			return fault.New(fault.TooLarge, "The source has more than the %d files or %s that a space may hold.", lim.Files, bytesize.Text(lim.Space))
		}
		if !r.db.Has(q.hash) {
			if err := w.AddNamed(q.hash, plumbing.BlobObject, data); err != nil {
				return err
			}
		}
		if i, dup := at[f.path]; dup {
			reqs[i] = q
		} else {
			at[f.path] = len(reqs)
			reqs = append(reqs, q)
		}
		if res.Files%1000 == 0 {
			progress(fmt.Sprintf("%d files, %s", res.Files, bytesize.Text(res.Bytes)))
		}
		return nil
	}, res.note)
	if err != nil {
		if fault.CodeOf(err) != fault.Internal {
			return ImportResult{}, err
		}
		return ImportResult{}, r.internalf(err, "import")
	}
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	if err := check(); err != nil {
		return res, err
	}
	res.Commit, res.Replaced, err = r.commitImport(ctx, w, reqs, m)
	if err != nil {
		return ImportResult{}, err
	}
	for _, f := range res.Commit.Rejected {
		res.note(f.Path, f.Err)
	}
	if res.Commit.Changed {
		r.committed(res.Commit)
	}
	return res, nil
}

// readImport validates and reads a file.
func (r *repo) readImport(ctx context.Context, f importFile) (request, []byte, error) {
	if _, err := space.ParsePath(f.path); err != nil {
		return request{}, nil, err
	}
	if f.size > r.s.o.Limits.File {
		return request{}, nil, tooLarge(f.path, r.s.o.Limits.File)
	}
	in, err := f.open()
	if err != nil {
		return request{}, nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, r.s.o.Limits.File+1))
	if err != nil {
		return request{}, nil, err
	}
	if int64(len(data)) > r.s.o.Limits.File {
		return request{}, nil, tooLarge(f.path, r.s.o.Limits.File)
	}
	q, err := r.check(space.Change{Path: f.path, Mode: f.mode, Content: data})
	if err == nil {
		q.warning, err = r.screen(ctx, q, data)
	}
	q.data = nil // the pack has the blob
	return q, data, err
}

func tooLarge(path string, limit int64) error {
	return fault.New(fault.TooLarge, "The file %q is larger than the %s that a file may have.", path, bytesize.Text(limit))
}

// commitImport commits requests whose blobs are in the pack of w or in the repository. It
// removes the pack if the commit fails. The caller holds commitMu, so nobody else can have
// used the pack.
func (r *repo) commitImport(ctx context.Context, w *packfile.Writer, reqs []request, m space.Meta) (c space.Commit, replaced []space.Path, err error) {
	head := r.head.Load()
	pristine, err := r.pristine(head)
	if err != nil {
		return space.Commit{}, nil, err
	}
	if pristine {
		for i := range reqs {
			at, err := r.trees().Lookup(head.tree, string(reqs[i].path))
			if err != nil {
				return space.Commit{}, nil, r.internalf(err, "import")
			}
			if at.HasFile() {
				reqs[i].base, reqs[i].baseMode = packfile.BlobID(at.Hash), at.FileMode()
			}
		}
	} else {
		if reqs, err = r.notKept(head.tree, reqs); err == nil {
			replaced, err = r.replaceUntouchedSeeds(ctx, head, reqs)
		}
		if err != nil {
			return space.Commit{}, nil, r.internalf(err, "import")
		}
	}
	p, err := r.decide(ctx, head, reqs, space.KeepBoth)
	if err != nil {
		return space.Commit{}, nil, err
	}
	var pk *packfile.Pack
	if len(w.Entries) > 0 {
		if pk, err = w.Finish(); err != nil {
			return space.Commit{}, nil, r.internalf(err, "import")
		}
		r.db.Add(pk)
	}
	c, err = r.apply(ctx, p, m)
	if err != nil && pk != nil && r.head.Load() == head {
		for _, ext := range []string{".idx", ".pack"} {
			err = errors.Join(err, os.Remove(pk.Base+ext))
		}
		err = errors.Join(err, r.db.Rescan())
	}
	return c, replaced, err
}

// notKept leaves out files of which head has a conflict copy already. So a second import
// of a source adds no second copy.
func (r *repo) notKept(tree packfile.Hash, reqs []request) ([]request, error) {
	left := make([]request, 0, len(reqs))
	for _, q := range reqs {
		kept, err := r.isKept(tree, q)
		if err != nil {
			return nil, err
		}
		if !kept {
			left = append(left, q)
		}
	}
	return left, nil
}

// isKept reports whether head has something else at a file's path, and the file as a
// conflict copy beside it.
func (r *repo) isKept(tree packfile.Hash, q request) (bool, error) {
	at, err := r.trees().Lookup(tree, string(q.path))
	if err != nil || !at.Found || at.Hash == q.hash {
		return false, err
	}
	dir, name := path.Split(string(q.path))
	parent, err := r.trees().Lookup(tree, strings.TrimSuffix(dir, "/"))
	if err != nil {
		return false, err
	}
	siblings, err := r.db.Tree(parent.Hash)
	if err != nil {
		return false, err
	}
	stem, ext := merge.CopyStem(name)
	for _, e := range siblings {
		if e.Hash == q.hash && e.IsFile() && e.FileMode() == q.mode && space.IsConflictCopy(space.Path(e.Name)) &&
			strings.HasPrefix(e.Name, stem+space.ConflictMark) && strings.HasSuffix(e.Name, ext) {
			return true, nil
		}
	}
	return false, nil
}

// adoption is a foreign history that was checked, and its effect on head.
type adoption struct {
	weight
	edits []trees.Edit // removals from the history's head
}

// weighAdoption checks the head of a foreign history. from is a repository that has this
// history and the space's own.
func (r *repo) weighAdoption(ctx context.Context, from *repo, head, theirs *headState) (a adoption, err error) {
	if a.weight, err = from.weigh(ctx, head.tree, theirs.tree); err != nil {
		return a, err
	}
	for _, n := range a.notes {
		switch space.RuleOf(n.Err) {
		case space.RuleGit, space.RuleSegment:
			// The path would be dangerous in a checkout, so the commit on top of the history
			// removes it. Other paths stay; checkouts leave them out if necessary.
			a.edits = append(a.edits, trees.Edit{Path: n.Path})
		}
	}
	return a, nil
}

// adopt makes a quarantined history the space's history, with a commit on top that adds
// the files of the space that the history lacks. The space's first commit stays in the
// repository and in the reflog. If the space has more commits, the error is
// errNotPristine.
func (r *repo) adopt(ctx context.Context, q *quarantine, m space.Meta, check func() error, progress func(string)) (ImportResult, error) {
	head := r.head.Load()
	q.r.db.Lender = r.db
	a, err := r.weighAdoption(ctx, q.r, head, q.head)
	if err != nil {
		return ImportResult{}, r.adoptError(err)
	}
	warnings, err := r.screenHistory(ctx, q, progress)
	if err != nil {
		return ImportResult{}, r.adoptError(err)
	}
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	if err := check(); err != nil {
		return ImportResult{}, err
	}
	if ok, err := r.pristine(r.head.Load()); err != nil || !ok {
		return ImportResult{}, errors.Join(err, errNotPristine)
	}
	theirs, err := r.allowed(ctx, head, a.weight)
	if err != nil {
		return ImportResult{}, r.adoptError(err)
	}
	if err := r.takePacks(q.r.db); err != nil {
		return ImportResult{}, r.internalf(err, "import")
	}
	c, err := r.adoptHere(ctx, head, q.head, a, m)
	if err != nil {
		return ImportResult{}, r.adoptError(err)
	}
	c.Warnings = append(c.Warnings, warnings...)
	r.committed(c)
	return ImportResult{Commit: c, History: true, Files: theirs.files, Bytes: theirs.bytes, Notes: a.notes, Noted: a.noted}, nil
}

func (r *repo) adoptError(err error) error {
	if fault.CodeOf(err) == fault.Internal {
		return r.internalf(err, "import")
	}
	return err
}

// adoptHere makes a foreign history the space's history. The new head of the space is the head of
// that history (theirs), or a new commit whose parent is theirs. The repository already has the
// objects of the history. The caller holds commitMu.
func (r *repo) adoptHere(ctx context.Context, head, theirs *headState, a adoption, m space.Meta) (space.Commit, error) {
	if _, err := r.allowed(ctx, head, a.weight); err != nil {
		return space.Commit{}, err
	}
	c, onTop, err := r.adoptHead(ctx, head, theirs, a.edits, m)
	if err != nil {
		return space.Commit{}, err
	}
	c.Files = slices.DeleteFunc(a.files, func(f space.FileChange) bool { return onTop[string(f.Path)] })
	c.Changed, c.Rejected = true, a.notes
	r.totals = nil // counted again on the next use
	return c, nil
}

// takePacks adds the quarantine's packs to the repository, durably.
func (r *repo) takePacks(from *packfile.DB) error {
	names, err := packfile.PackNames(from.PackDir())
	if err != nil {
		return err
	}
	for _, name := range names {
		for _, ext := range []string{".pack", ".idx"} {
			to := filepath.Join(r.db.PackDir(), name+ext)
			if err := linkOrCopy(filepath.Join(from.PackDir(), name+ext), to); err != nil {
				return err
			}
			if err := os.Chmod(to, 0o444); err != nil {
				return err
			}
			if err := r.s.o.disk.SyncDir(to); err != nil { // SyncDir works for files too
				return err
			}
			r.s.o.probe("taken " + ext)
		}
	}
	if err := r.s.o.disk.SyncDir(r.db.PackDir()); err != nil {
		return err
	}
	return r.db.Rescan()
}

// adoptHead moves the branch to the adopted history. If there are files to add or to
// remove, it records a commit on top, whose paths it returns as onTop.
func (r *repo) adoptHead(ctx context.Context, head, theirs *headState, edits []trees.Edit, m space.Meta) (c space.Commit, onTop map[string]bool, err error) {
	kept := 0
	names := packfile.NameIndex{}
	err = r.trees().Walk(ctx, head.tree, "", func(path string, e packfile.TreeEntry) error {
		at, err := r.trees().LookupIn(names, theirs.tree, path)
		if err == nil && !at.Found && at.Blocked == "" {
			edits = append(edits, trees.Edit{Path: path, Mode: e.Mode, Hash: e.Hash})
			kept++
		}
		return err
	})
	if err != nil {
		return c, nil, err
	}
	onTop = map[string]bool{}
	for _, e := range edits {
		onTop[e.Path] = true
	}
	if len(edits) > 0 {
		var objs []trees.Object
		tree, err := r.trees().Rewrite(theirs.tree, edits, &objs)
		if err != nil {
			return c, nil, err
		}
		c, err = r.record(ctx, head, []packfile.Hash{theirs.id}, tree, objs, m, fmt.Sprintf("Add %d files that every space starts with", kept))
		return c, onTop, err
	}
	raw, err := commits.Get(r.db, theirs.id)
	if err != nil {
		return c, nil, err
	}
	if err := r.advance(head.id, theirs.id, m.Author, stampNow(), adopting); err != nil {
		return c, nil, err
	}
	r.head.Store(theirs)
	return r.proven(raw, theirs.id), onTop, nil
}
