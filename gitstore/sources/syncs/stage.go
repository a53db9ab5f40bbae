package syncs

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's name of a blob
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"satchel/gitstore/sources/upstream"
	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// stagedFile is a file of a stage or a manifest.
type stagedFile struct {
	upstream.File
	Blob space.BlobID `json:"blob"`
	Size int64        `json:"size"`
}

// stage is the upstream.Sink of a sync. It keeps what it gets in a directory: each new content in
// a file named by its blob, and the list of files in listName. It can be made again at any time.
type stage struct {
	dir      string                // empty for a stage without contents
	known    map[string]stagedFile // the manifest by URL
	fresh    bool
	has      map[space.BlobID]bool // contents that the space or the stage has
	files    map[space.Path]stagedFile
	skipped  map[string]int
	bytes    int64
	limits   limits
	progress func(done, total int)
	total    int
	fetched  int
	enough   int   // ends the fetch after this many files; 0 for never
	look     *look // of a preview, else nil
}

type limits struct {
	files        int
	file, source int64 // bytes
}

const listName = "files.json"

// errEnough ends the fetch of a preview.
var errEnough = errors.New("the preview has enough files")

// newStage returns a stage in the new directory dir, or without contents if dir is empty. known
// is the manifest. If fresh is set, Known returns no file, so that every file is fetched again.
func newStage(dir string, known []stagedFile, fresh bool, l limits, progress func(done, total int)) (*stage, error) {
	s := &stage{
		dir: dir, known: map[string]stagedFile{}, fresh: fresh, has: map[space.BlobID]bool{}, files: map[space.Path]stagedFile{},
		skipped: map[string]int{}, limits: l, progress: progress,
	}
	for _, f := range known {
		s.known[f.URL] = f
		if !fresh {
			s.has[f.Blob] = true
		}
	}
	if dir == "" {
		return s, nil
	}
	return s, errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
}

var _ upstream.Sink = (*stage)(nil)

// Expect implements upstream.Sink.
func (s *stage) Expect(files int) {
	s.total = files
	s.Progress(len(s.files))
}

// Progress implements upstream.Sink.
func (s *stage) Progress(files int) {
	s.fetched = max(s.fetched, files)
	s.progress(s.fetched, s.total)
}

// Known implements upstream.Sink.
func (s *stage) Known(url string) (upstream.File, bool) {
	f, ok := s.known[url]
	return f.File, ok && !s.fresh
}

// Files implements upstream.Sink.
func (s *stage) Files() iter.Seq[upstream.File] {
	return func(yield func(upstream.File) bool) {
		for _, f := range s.known {
			if !yield(f.File) {
				return
			}
		}
	}
}

// Keep implements upstream.Sink.
func (s *stage) Keep(ctx context.Context, f upstream.File) error {
	old, ok := s.known[f.URL]
	if !ok {
		return fmt.Errorf("no file of %s is known", f.URL)
	}
	return s.take(ctx, stagedFile{File: f, Blob: old.Blob, Size: old.Size})
}

// Put implements upstream.Sink.
func (s *stage) Put(ctx context.Context, f upstream.File, content []byte) error {
	if n := int64(len(content)); n > s.limits.file {
		return fault.New(fault.TooLarge, "The file %s has %s, and at most %s are allowed.", f.Path, bytesize.Text(n), bytesize.Text(s.limits.file))
	}
	if s.look != nil {
		s.look.at(&f, content)
	}
	b := blobOf(content)
	if s.dir != "" && !s.has[b] {
		if err := os.WriteFile(filepath.Join(s.dir, string(b)), content, 0o600); err != nil {
			return fmt.Errorf("stage a file: %w", err)
		}
		s.has[b] = true
	}
	return s.take(ctx, stagedFile{File: f, Blob: b, Size: int64(len(content))})
}

// Skip implements upstream.Sink.
func (s *stage) Skip(ctx context.Context, url string, r upstream.Reason) error {
	s.skipped[string(r)]++
	if old, ok := s.known[url]; ok {
		if _, there := s.files[old.Path]; !there {
			return s.take(ctx, old)
		}
	}
	return nil
}

func (s *stage) take(ctx context.Context, f stagedFile) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := space.ParsePath(string(f.Path)); err != nil {
		return err
	}
	if _, ok := s.files[f.Path]; ok {
		return fault.New(fault.Conflict, "Upstream has two files with the path %s. Give each part of the source its own output_path.", f.Path)
	}
	s.files[f.Path] = f
	s.bytes += f.Size
	switch {
	case len(s.files) > s.limits.files:
		return fault.New(fault.TooLarge, "Upstream has more than %d files, which is the limit of a source.", s.limits.files)
	case s.bytes > s.limits.source:
		return fault.New(fault.TooLarge, "Upstream has more than %d MB, which is the limit of a source.", s.limits.source>>20)
	case s.enough > 0 && len(s.files) >= s.enough:
		return errEnough
	}
	s.Progress(len(s.files))
	return nil
}

// list returns the files, sorted by path.
func (s *stage) list() []stagedFile {
	out := make([]stagedFile, 0, len(s.files))
	for _, f := range s.files {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b stagedFile) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return out
}

// save stores the list of files, after which the stage is complete.
func (s *stage) save() error {
	b, err := json.Marshal(s.list())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, listName), b, 0o600)
}

// errStage reports a stage that is gone or damaged, such as after a loss of power.
var errStage = errors.New("the stage is not complete")

// readStage returns the files of a complete stage.
func readStage(dir string) ([]stagedFile, error) {
	b, err := os.ReadFile(filepath.Join(dir, listName))
	var files []stagedFile
	if err == nil {
		err = json.Unmarshal(b, &files)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errStage, err)
	}
	return files, nil
}

// content returns the content of a staged file. ok is false if the stage does not have it
// because the space already does.
func content(dir string, f stagedFile) (b []byte, ok bool, err error) {
	b, err = os.ReadFile(filepath.Join(dir, string(f.Blob)))
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err == nil && blobOf(b) != f.Blob {
		err = errStage
	}
	return b, err == nil, err
}

// blobOf returns the ID that git gives to a content.
func blobOf(content []byte) space.BlobID {
	h := sha1.New() //nolint:gosec // see the import
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return space.BlobID(hex.EncodeToString(h.Sum(nil)))
}

// compare counts what a stage changes in a manifest.
func compare(old, files []stagedFile) (c space.SyncCounts) {
	was := make(map[space.Path]space.BlobID, len(old))
	for _, f := range old {
		was[f.Path] = f.Blob
	}
	added := map[space.BlobID]int{}
	for _, f := range files {
		c.Files++
		c.Bytes += f.Size
		blob, ok := was[f.Path]
		switch {
		case !ok:
			added[f.Blob]++
			c.Added++
		case blob != f.Blob:
			c.Changed++
		}
		delete(was, f.Path)
	}
	for _, blob := range was {
		if added[blob] > 0 {
			added[blob]--
			c.Added--
			c.Renamed++
		} else {
			c.Deleted++
		}
	}
	return c
}
