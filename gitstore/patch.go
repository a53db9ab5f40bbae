package gitstore

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	fdiff "github.com/go-git/go-git/v5/plumbing/format/diff"

	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/bytesize"
	"satchel/internal/diff"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Limits of a patch for people.
const (
	maxPatchFile  = 2 << 20   // bytes of a file whose lines are compared
	maxPatchBytes = 8 << 20   // bytes of a whole patch
	patchWork     = 5_000_000 // steps of comparing the lines of one file
)

// Patch returns the differences between two commits at or under a path ("" for all), as a
// unified diff for people to read. An empty from is the empty tree, an empty to is head.
// For binary files and files above 2 MiB, it contains only the names. A patch above 8 MiB
// is a fault.TooLarge.
func (s *Store) Patch(ctx context.Context, id space.SpaceID, from, to space.CommitID, path space.Path) (string, error) {
	r, st, release, err := s.at(ctx, id, to)
	if err != nil {
		return "", err
	}
	defer release()
	var old packfile.Hash
	if from != "" {
		f, err := r.resolve(string(from))
		if err != nil {
			return "", err
		}
		old = f.tree
	}
	files, err := r.diffAt(ctx, old, st.tree, string(path))
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	for _, f := range files {
		if !under(string(f.Path), string(path)) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
		p, err := r.filePatch(f)
		if err != nil {
			return "", r.internalf(err, "patch")
		}
		if err := fdiff.NewUnifiedEncoder(&out, fdiff.DefaultContextLines).Encode(onePatch{p}); err != nil {
			return "", r.internalf(err, "patch")
		}
		if out.Len() > maxPatchBytes {
			return "", fault.New(fault.TooLarge, "The difference is larger than %s. Ask for a single file or directory.", bytesize.Text(maxPatchBytes))
		}
	}
	return out.String(), nil
}

// diffAt lists at least the differences at or under a path. If neither tree has a directory
// there, it compares nothing else.
func (r *repo) diffAt(ctx context.Context, from, to packfile.Hash, path string) ([]space.FileChange, error) {
	if path == "" {
		return r.diff(ctx, from, to)
	}
	a, err := r.trees().Lookup(from, path)
	if err != nil {
		return nil, r.internalf(err, "diff")
	}
	b, err := r.trees().Lookup(to, path)
	if err != nil {
		return nil, r.internalf(err, "diff")
	}
	if a.HasDir() || b.HasDir() {
		return r.diff(ctx, from, to)
	}
	c := trees.Change{Path: path}
	if a.HasFile() {
		c.Old = a.TreeEntry
	}
	if b.HasFile() {
		c.New = b.TreeEntry
	}
	return r.changes([]trees.Change{c})
}

func (r *repo) filePatch(f space.FileChange) (*filePatch, error) {
	p := &filePatch{}
	read := func(b space.BlobID, m space.Mode) (*patchFile, string, error) {
		if b == "" {
			return nil, "", nil
		}
		h, err := packfile.HashFrom(string(b))
		if err != nil {
			return nil, "", err
		}
		n, err := r.db.Size(h)
		if err != nil {
			return nil, "", err
		}
		pf := &patchFile{h, filemode.FileMode(packfile.TreeMode(m)), string(f.Path)}
		if n > maxPatchFile {
			p.binary = true
			return pf, "", nil
		}
		data, err := r.db.Blob(h)
		if err != nil {
			return nil, "", err
		}
		head := data[:min(len(data), 8000)] // as git does
		if bytes.IndexByte(head, 0) >= 0 || !utf8.Valid(data) {
			p.binary = true
		}
		return pf, string(data), nil
	}
	var a, b string
	var err1, err2 error
	p.from, a, err1 = read(f.Old, f.OldMode)
	p.to, b, err2 = read(f.New, f.NewMode)
	if err := errors.Join(err1, err2); err != nil || p.binary {
		return p, packfile.DamagedAt(string(f.Path), err)
	}
	p.chunks = compared(a, b)
	return p, nil
}

// compared returns the difference of two texts by lines.
func compared(from, to string) []fdiff.Chunk {
	x, y := slices.Collect(strings.Lines(from)), slices.Collect(strings.Lines(to))
	work := patchWork
	runs, _ := diff.Diff(x, y, &work)
	var out []fdiff.Chunk
	for _, run := range runs {
		op, lines := fdiff.Equal, x
		switch run.Kind {
		case diff.Removed:
			op = fdiff.Delete
		case diff.Added:
			op, lines = fdiff.Add, y
		}
		out = append(out, chunk{strings.Join(lines[:run.N], ""), op})
		if run.Kind != diff.Added {
			x = x[run.N:]
		}
		if run.Kind != diff.Removed {
			y = y[run.N:]
		}
	}
	return out
}

// Types for go-git's encoder.
type (
	onePatch  struct{ p *filePatch }
	filePatch struct {
		from, to *patchFile
		binary   bool
		chunks   []fdiff.Chunk
	}
	patchFile struct {
		hash plumbing.Hash
		mode filemode.FileMode
		path string
	}
	chunk struct {
		text string
		op   fdiff.Operation
	}
)

func (p onePatch) FilePatches() []fdiff.FilePatch { return []fdiff.FilePatch{p.p} }
func (p onePatch) Message() string                { return "" }
func (p *filePatch) IsBinary() bool               { return p.binary }
func (p *filePatch) Chunks() []fdiff.Chunk        { return p.chunks }
func (p *filePatch) Files() (from, to fdiff.File) {
	// A nil *patchFile must not become a fdiff.File that is not nil.
	if p.from != nil {
		from = p.from
	}
	if p.to != nil {
		to = p.to
	}
	return from, to
}
func (f *patchFile) Hash() plumbing.Hash     { return f.hash }
func (f *patchFile) Mode() filemode.FileMode { return f.mode }
func (f *patchFile) Path() string            { return strings.ToValidUTF8(f.path, "\uFFFD") }
func (c chunk) Content() string              { return c.text }
func (c chunk) Type() fdiff.Operation        { return c.op }
