package index

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
)

// manyChanges is the number of changed files above which a rebuild is faster than an
// update, if the files are most of the collection.
const manyChanges = 500

// Update brings the index of a collection to the head of src. Updates of one collection run
// one after another. Queries continue meanwhile. If the index is already at the head, Update
// only repairs damage and tries unreadable files again.
func (x *Index) Update(ctx context.Context, id space.SpaceID, src Source) error {
	e, err := x.lock(ctx, id)
	if err != nil {
		return err
	}
	defer e.unlock()
	at, err := x.update(ctx, e, src)
	if err != nil {
		err = fmt.Errorf("update index of %s: %w", id, err)
	}
	e.settled(at, err)
	x.engine.Changed(string(id))
	return err
}

// Rebuild builds the index of a collection again.
func (x *Index) Rebuild(ctx context.Context, id space.SpaceID, src Source) error {
	e, err := x.lock(ctx, id)
	if err != nil {
		return err
	}
	defer e.unlock()
	// Opening the current database first removes unfinished builds.
	if d, err := x.open(ctx, e); err == nil && d != nil {
		d.Release()
	}
	head, err := src.Head(ctx, id)
	if err == nil {
		err = x.rebuild(ctx, e, src, head)
	}
	if err != nil {
		err = fmt.Errorf("rebuild index of %s: %w", id, err)
	}
	e.settled(head, err)
	x.engine.Changed(string(id))
	return err
}

// Sound calls ask, which queries the collection, on an undamaged index. If ask or another
// query finds damage meanwhile, Sound rebuilds the index and calls ask once more. It fails
// if damage is found again.
func (x *Index) Sound(ctx context.Context, id space.SpaceID, src Source, ask func() error) error {
	e, err := x.entry(id)
	if err != nil {
		return err
	}
	for range 2 {
		damaged, before := e.health()
		if damaged {
			if err := x.Update(ctx, id, src); err != nil {
				return err
			}
			_, before = e.health()
		}
		err := ask()
		if damaged, after := e.health(); !damaged && after == before {
			return err
		}
	}
	return fault.New(fault.Unavailable, "The search index is damaged, and was damaged again after it was rebuilt. Check the disk, then run: satchel reindex")
}

// Reread is like Update, but it also reads the given files of the head again, even if they
// have not changed. It returns the paths that are not in the head, after it has removed them
// from the index.
func (x *Index) Reread(ctx context.Context, id space.SpaceID, src Source, paths []space.Path) (absent []space.Path, err error) {
	e, err := x.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer e.unlock()
	at, err := x.update(ctx, e, src)
	if err == nil {
		absent, err = x.reread(ctx, e, src, at, paths)
	}
	if err != nil {
		err = fmt.Errorf("read files of %s again: %w", id, err)
	}
	e.settled(at, err)
	x.engine.Changed(string(id))
	return absent, err
}

func (x *Index) reread(ctx context.Context, e *entry, src Source, at space.CommitID, paths []space.Path) (absent []space.Path, err error) {
	held := map[space.Path]space.FileChange{}
	if at != "" {
		files, err := src.Files(ctx, e.id, at, "")
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			held[f.Path] = f.Added()
		}
	}
	var changes []space.FileChange
	seen := map[space.Path]bool{}
	for _, p := range paths {
		if seen[p] {
			continue
		}
		seen[p] = true
		c, ok := held[p]
		c.Path, c.Status = p, space.Modified
		if !ok {
			c.Status = space.Deleted
			absent = append(absent, p)
		}
		changes = append(changes, c)
	}
	d, err := x.open(ctx, e)
	if err != nil || d == nil {
		return absent, err
	}
	defer d.Release()
	if len(changes) == 0 {
		return absent, nil
	}
	err = x.apply(ctx, e, d, src, changes, at)
	if err != nil && ctx.Err() == nil && postings.Damaged(err) {
		x.opts.Logger.WarnContext(ctx, "index is damaged and will be rebuilt", "collection", e.id, "error", err)
		err = x.rebuild(ctx, e, src, at)
	}
	return absent, err
}

func (x *Index) update(ctx context.Context, e *entry, src Source) (space.CommitID, error) {
	head, err := src.Head(ctx, e.id)
	if err != nil {
		return "", err
	}
	e.noteHead(head, x.opts.Now())
	d, err := x.open(ctx, e)
	if err != nil {
		return "", err
	}
	if d != nil {
		defer d.Release()
	}
	if damaged, _ := e.health(); d == nil || damaged {
		return head, x.rebuild(ctx, e, src, head)
	}
	st := d.State()
	var changes []space.FileChange
	if st.Commit != head {
		changes, err = src.Diff(ctx, e.id, st.Commit, head)
	}
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		x.opts.Logger.InfoContext(ctx, "index is rebuilt, because its commit cannot be compared", "collection", e.id, "commit", st.Commit, "error", err)
		return head, x.rebuild(ctx, e, src, head)
	}
	if len(changes) > manyChanges && int64(len(changes)) > st.Docs/2 {
		return head, x.rebuild(ctx, e, src, head)
	}
	if st.Unread > 0 {
		changes = append(changes, x.repaired(ctx, e.id, d, src, changes, head)...)
	}
	if st.Commit == head && len(changes) == 0 {
		return head, nil
	}
	if err := x.apply(ctx, e, d, src, changes, head); err != nil {
		if ctx.Err() != nil || !postings.Damaged(err) {
			return "", err
		}
		x.opts.Logger.WarnContext(ctx, "index is damaged and will be rebuilt", "collection", e.id, "error", err)
		return head, x.rebuild(ctx, e, src, head)
	}
	return head, nil
}

// maxUnread limits the unreadable files that an update tries again. Each update chooses them
// at random.
const maxUnread = 100

// repaired lists the files that were unreadable when they were indexed and are readable
// now, except those in changed.
func (x *Index) repaired(ctx context.Context, id space.SpaceID, d *postings.Database, src Source, changed []space.FileChange, head space.CommitID) (list []space.FileChange) {
	paths, err := d.UnreadPaths(ctx, maxUnread)
	if err != nil {
		x.opts.Logger.WarnContext(ctx, "files that could not be read are not retried", "collection", id, "error", err)
		return nil
	}
	for _, p := range paths {
		if slices.ContainsFunc(changed, func(c space.FileChange) bool { return c.Path == p }) {
			continue
		}
		files, err := src.Files(ctx, id, head, p)
		if err != nil {
			continue
		}
		for _, f := range files {
			if _, err := src.ReadBlob(ctx, id, f.Blob); f.Path == p && err == nil {
				c := f.Added()
				c.Status = space.Modified
				list = append(list, c)
			}
		}
	}
	return list
}

// dates returns the dates of files if the source is a Dater.
func (x *Index) dates(ctx context.Context, id space.SpaceID, src Source, from, to space.CommitID) map[space.Path]time.Time {
	dater, ok := src.(Dater)
	if !ok {
		return nil
	}
	dates, err := dater.Dates(ctx, id, from, to)
	if err != nil {
		x.opts.Logger.WarnContext(ctx, "files are indexed without dates", "collection", id, "error", err)
	}
	return dates
}

// load reads and analyses one file. For a damaged file it indexes only the path, so that
// the other files can still be indexed.
func (x *Index) load(ctx context.Context, a *parse.Analyzer, id space.SpaceID, src Source, c space.FileChange, date time.Time) (parse.Document, error) {
	var data []byte
	if c.Size <= maxFileBytes {
		var err error
		if data, err = src.ReadBlob(ctx, id, c.New); fault.CodeOf(err) == fault.Damaged {
			x.opts.Logger.ErrorContext(ctx, "a damaged file is indexed only by its name", "collection", id, "path", c.Path, "error", err)
			c.New = ""
		} else if err != nil {
			return parse.Document{}, fmt.Errorf("read blob %s: %w", c.New, err)
		}
		if int64(len(data)) > maxFileBytes {
			data = nil
		}
	}
	return a.Analyse(c, data, date, postings.MaxChunks), nil
}

// apply writes the changes between two commits in one transaction.
func (x *Index) apply(ctx context.Context, e *entry, d *postings.Database, src Source, changes []space.FileChange, head space.CommitID) error {
	dates := x.dates(ctx, e.id, src, d.State().Commit, head)
	a := x.ranker.Analyzer()
	defer x.ranker.Release(a)
	return d.Update(ctx, head, func(w *postings.Writer) error {
		for _, c := range changes {
			if c.Status != space.Added {
				had, err := w.Remove(ctx, a, c.Path)
				if err != nil {
					return err
				}
				// The index has every file of the old commit that parse.Indexed accepts.
				if old := (space.FileChange{Path: c.Path, NewMode: c.OldMode}); !had && c.Old != "" && parse.Indexed(old) {
					return fmt.Errorf("%w: %s is not found", postings.ErrDamaged, c.Path)
				}
			}
			if c.Status == space.Deleted || !parse.Indexed(c) {
				continue
			}
			doc, err := x.load(ctx, a, e.id, src, c, dates[c.Path])
			if err != nil {
				return err
			}
			if err := w.Add(ctx, doc); err != nil {
				return err
			}
		}
		return nil
	})
}

// rebuild indexes a commit into a new file, which replaces the old file when it is complete
// and on disk. The index of a collection without a commit is empty.
func (x *Index) rebuild(ctx context.Context, e *entry, src Source, head space.CommitID) (err error) {
	start := x.opts.Now()
	old, err := x.files(e.id)
	if err != nil {
		return err
	}
	generation := 1
	for _, f := range old {
		generation = max(generation, generationOf(f)+1)
	}
	file := x.fileName(e.id, generation)
	building := file + ".new"
	postings.Remove(building)
	if err := x.build(ctx, e.id, building, src, head); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			postings.Remove(building)
		}
	}()
	if err := syncPath(building); err != nil {
		return err
	}
	if err := os.Rename(building, file); err != nil {
		return fmt.Errorf("install index: %w", err)
	}
	if err := syncPath(x.opts.Dir); err != nil {
		return err
	}
	d, err := postings.Open(ctx, file, x.opts.storage, x.cache)
	if err != nil {
		postings.Remove(file)
		return fmt.Errorf("open new index: %w", err)
	}
	replaced := e.swap(d)
	for _, f := range old {
		if f != replaced { // the last reader of the replaced database removes its file
			postings.Remove(f)
		}
	}
	st := d.State()
	x.opts.Logger.InfoContext(ctx, "index was rebuilt", "collection", e.id, "commit", head, "files", st.Docs, "chunks", st.Chunks, "took", x.opts.Now().Sub(start))
	return nil
}

// syncPath flushes a file or a directory to disk.
func syncPath(name string) error {
	if fi, err := os.Stat(name); err == nil && fi.IsDir() && runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.OpenFile(filepath.Clean(name), os.O_RDONLY, 0)
	if err != nil {
		return fmt.Errorf("sync index: %w", err)
	}
	defer f.Close()
	if runtime.GOOS == "windows" {
		return nil // Windows cannot flush a file that is open for reading; SQLite already flushed it
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync index: %w", err)
	}
	return nil
}

// build creates a database of all files of a commit. One goroutine for each processor
// analyses files. The calling goroutine writes the results in order.
func (x *Index) build(ctx context.Context, id space.SpaceID, file string, src Source, head space.CommitID) error {
	var files []space.FileChange
	var dates map[space.Path]time.Time
	if head != "" {
		all, err := src.Files(ctx, id, head, "")
		if err != nil {
			return err
		}
		for _, f := range all {
			files = append(files, f.Added())
		}
		dates = x.dates(ctx, id, src, "", head)
	}
	return postings.Build(ctx, file, x.opts.storage, head, func(w *postings.Writer) error {
		return x.analyseAll(ctx, id, src, files, dates, func(d parse.Document) error { return w.Add(ctx, d) })
	})
}

// analyseAll calls yield with every indexed file, in order. Its goroutines have ended when
// it returns.
func (x *Index) analyseAll(ctx context.Context, id space.SpaceID, src Source, files []space.FileChange, dates map[space.Path]time.Time, yield func(parse.Document) error) error {
	type job struct {
		file space.FileChange
		done chan struct{}
		doc  parse.Document
		err  error
	}
	workers := runtime.GOMAXPROCS(0)
	ctx, cancel := context.WithCancel(ctx)
	todo := make(chan *job, 4*workers)
	ordered := make(chan *job, 16*workers) // bounds the documents held in memory
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		defer close(todo)
		defer close(ordered)
		for _, f := range files {
			if !parse.Indexed(f) {
				continue
			}
			j := &job{file: f, done: make(chan struct{})}
			select {
			case ordered <- j:
			case <-ctx.Done():
				return
			}
			select {
			case todo <- j:
			case <-ctx.Done():
				return
			}
		}
	})
	for range workers {
		wg.Go(func() {
			a := parse.NewBuilder()
			for j := range todo {
				if j.err = ctx.Err(); j.err == nil {
					j.doc, j.err = x.load(ctx, a, id, src, j.file, dates[j.file.Path])
				}
				close(j.done)
			}
		})
	}
	for j := range ordered {
		select {
		case <-j.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if j.err != nil {
			return j.err
		}
		if err := yield(j.doc); err != nil {
			return err
		}
	}
	return ctx.Err()
}
