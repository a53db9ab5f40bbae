package syncs

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"satchel/gitstore/sources"
	"satchel/gitstore/sources/upstream"
	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Upload holds the pages of uploaded files, which belong to no source yet. Call Discard at the end.
type Upload struct {
	// Received are the uploaded files with the pages that they became.
	Received []space.UploadedFile

	*stage
	m    *Manager
	note func(file string, done, total int)
}

// Receive converts an uploaded file, or the files of a .zip archive, to pages of a source. The
// source need not exist yet. The error is a fault if the whole upload is refused. Receive
// calls note after each file.
func (m *Manager) Receive(ctx context.Context, id, name string, r io.Reader, note func(file string, done, total int)) (*Upload, error) {
	kind, err := m.uploadKind(id)
	if err != nil {
		return nil, err
	}
	env, done, err := m.env()
	if err != nil {
		return nil, err
	}
	defer done()
	file, size, err := upstream.Spool(ctx, env, name, r)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	select {
	case m.desk <- struct{}{}: // taken after the file has arrived, so that no slow client holds a place
		defer func() { <-m.desk }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	dir, err := os.MkdirTemp(m.o.Dir, "upload-")
	if err != nil {
		return nil, err
	}
	u := &Upload{m: m, note: note}
	if u.stage, err = newStage(dir, nil, true, m.limits(), func(int, int) {}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	err = upstream.Receive(ctx, env, kind, name, file, size, u, func(name string, why *upstream.Refusal) {
		u.add(space.UploadedFile{Name: name, Reason: string(why.Reason), Problem: fault.PublicOf(why)})
	})
	if err != nil {
		u.Discard()
		return nil, err
	}
	return u, nil
}

// uploadKind returns the kind of a source that takes uploads. A source that does not exist yet
// has the kind upstream.Upload.
func (m *Manager) uploadKind(id string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[id]
	if e == nil {
		return upstream.Upload, nil
	}
	return e.row.Kind, takesUploads(id, e.row.Kind)
}

func takesUploads(id, kind string) error {
	if space.SourceKind(kind).TakesUploads() {
		return nil
	}
	return fault.New(fault.Invalid, "The source %s follows an upstream, so it takes no uploaded files.", id)
}

// Put implements upstream.Sink.
func (u *Upload) Put(ctx context.Context, f upstream.File, content []byte) error {
	err := u.stage.Put(ctx, f, content)
	if err == nil {
		u.add(space.UploadedFile{Name: f.URL, Path: f.Path})
	}
	return err
}

func (u *Upload) add(f space.UploadedFile) {
	u.Received = append(u.Received, f)
	u.note(f.Name, len(u.Received), u.total)
}

// Pages returns the number of pages.
func (u *Upload) Pages() int { return len(u.files) }

// Discard removes the pages that no source has taken.
func (u *Upload) Discard() {
	if err := os.RemoveAll(u.dir); err != nil {
		u.m.o.Logger.Warn("the files of an upload were not removed", "error", err)
	}
}

// Store adds the pages of an upload to a source. They replace pages that have the same path, or
// that come from a file of the same name.
func (m *Manager) Store(ctx context.Context, id string, u *Upload) (space.SyncRun, error) {
	return m.rewrite(ctx, id, func(known []stagedFile, dir string) ([]stagedFile, error) {
		if err := os.Rename(u.dir, dir); err != nil {
			return nil, err
		}
		files := u.list()
		urls := map[string]bool{}
		for _, f := range files {
			urls[f.URL] = true
		}
		known = slices.DeleteFunc(known, func(f stagedFile) bool {
			_, same := u.files[f.Path]
			return same || urls[f.URL]
		})
		return append(known, files...), nil
	})
}

// Take removes pages from a source. A name is the path of a page or the name of the uploaded file.
func (m *Manager) Take(ctx context.Context, id string, names []string) (space.SyncRun, error) {
	return m.rewrite(ctx, id, func(known []stagedFile, dir string) ([]stagedFile, error) {
		for _, n := range names {
			rest := slices.DeleteFunc(slices.Clone(known), func(f stagedFile) bool { return string(f.Path) == n || f.URL == n })
			if len(rest) == len(known) {
				return nil, fault.New(fault.NotFound, "The source %s has no file %q.", id, n).In("path")
			}
			known = rest
		}
		return known, os.MkdirAll(dir, 0o700)
	})
}

// rewrite runs a sync of a source with the files that the function change returns. change gets the
// manifest and the directory of the new stage. rewrite first waits for a run in progress to end.
func (m *Manager) rewrite(ctx context.Context, id string, change func(known []stagedFile, dir string) ([]stagedFile, error)) (space.SyncRun, error) {
	e, r, err := m.turn(ctx, id)
	if err != nil {
		return space.SyncRun{}, err
	}
	err = func() error {
		known, err := m.manifest(ctx, id)
		if err != nil {
			return err
		}
		dir := m.stageDir(r.Run)
		files, err := change(known, dir)
		if err == nil {
			err = saveUploaded(dir, files, m.limits())
		}
		if err == nil {
			err = m.begin(ctx, r)
		}
		return err
	}()
	if err != nil {
		m.giveUp(e, r, err)
		return space.SyncRun{}, errors.Join(err, os.RemoveAll(m.stageDir(r.Run)))
	}
	return m.wait(ctx, r, func(space.SyncProgress) {})
}

// turn waits until a source that takes uploads has no run in progress, and returns a new run.
func (m *Manager) turn(ctx context.Context, id string) (*entry, *run, error) {
	for {
		m.mu.Lock()
		e := m.entries[id]
		switch {
		case e == nil:
			m.mu.Unlock()
			return nil, nil, sources.NotThere(id)
		case !space.SourceKind(e.row.Kind).TakesUploads():
			kind := e.row.Kind
			m.mu.Unlock()
			return nil, nil, takesUploads(id, kind)
		case e.run == nil:
			r := m.take(e, job{Source: id, Uploaded: true})
			m.mu.Unlock()
			return e, r, nil
		}
		other := e.run
		m.mu.Unlock()
		if _, err := m.open(); err != nil { // continues the run if an earlier process left it
			return nil, nil, err
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-m.ctx.Done():
			return nil, nil, fault.New(fault.Unavailable, "The server is shutting down.")
		}
	}
}

// saveUploaded completes a stage with a list of files.
func saveUploaded(dir string, files []stagedFile, l limits) error {
	var bytes int64
	for _, f := range files {
		bytes += f.Size
	}
	switch {
	case len(files) > l.files:
		return fault.New(fault.TooLarge, "The source would have %d files, and at most %d are allowed.", len(files), l.files)
	case bytes > l.source:
		return fault.New(fault.TooLarge, "The source would have %s, and at most %s are allowed.", bytesize.Text(bytes), bytesize.Text(l.source))
	}
	slices.SortFunc(files, func(a, b stagedFile) int { return strings.Compare(string(a.Path), string(b.Path)) })
	b, err := json.Marshal(files)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, listName), b, 0o600)
}

// stageUploaded is the step fetch of a source of uploaded files. The stage is complete already if
// the run was started by rewrite. Any other run stages what the source has.
func stageUploaded(known []stagedFile, dir string) (fetched, error) {
	files := known
	if dir != "" {
		staged, err := readStage(dir)
		switch {
		case err == nil:
			files = staged
		case !errors.Is(err, os.ErrNotExist):
			return fetched{}, damagedStage(err)
		case len(known) == 0:
			return fetched{}, fault.New(fault.NotFound, "This source has no files yet. Upload some, for example with satchel source upload ID FILE.")
		default:
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return fetched{}, err
			}
			if err := saveUploaded(dir, files, limits{files: len(files), source: 1 << 62}); err != nil {
				return fetched{}, err
			}
		}
	}
	return fetched{Counts: compare(known, files)}, nil
}
