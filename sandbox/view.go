package sandbox

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// file is the file at a path of a space; the zero file means that there is none.
type file struct {
	blob space.BlobID
	mode space.Mode
}

func (f file) exists() bool { return f.blob != "" }

// blobOf returns the object name that git gives the content.
func blobOf(content []byte) space.BlobID {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return space.BlobID(hex.EncodeToString(h.Sum(nil)))
}

// view is the host's knowledge of a sandbox's files: the tree with which the sandbox started (the
// seed), overlaid with later commits from the sandbox and later updates of it. The tree lock of the
// instance guards it.
type view struct {
	seeder space.Checkouts
	id     space.SpaceID
	seed   space.CommitID
	over   map[space.Path]file
	// damaged lists the files and directories that the seed's checkout lacks because
	// they are damaged on the server's disk.
	damaged []space.Path
}

// lacks reports whether the sandbox was started without a damaged path of the seed and has
// not received it since. The absence of such a path does not mean that it was deleted.
func (v *view) lacks(p space.Path) bool {
	if _, given := v.over[p]; given {
		return false
	}
	return slices.ContainsFunc(v.damaged, func(d space.Path) bool {
		return p == d || strings.HasPrefix(string(p), string(d)+"/")
	})
}

// stillDamaged lists the damaged paths that the sandbox still lacks.
func (v *view) stillDamaged() []space.Path {
	return slices.DeleteFunc(slices.Clone(v.damaged), func(p space.Path) bool { return !v.lacks(p) })
}

func (v *view) set(p space.Path, f file) { v.over[p] = f }

func (v *view) get(ctx context.Context, p space.Path) (file, error) {
	if f, ok := v.over[p]; ok {
		return f, nil
	}
	b, m, ok, err := v.seeder.Blob(ctx, v.id, v.seed, p)
	if err != nil || !ok {
		return file{}, err
	}
	return file{b, m}, nil
}

// loadAbove is the number of paths above which one listing of the whole seed
// is cheaper than asking for each.
const loadAbove = 128

// reader reads a view during one batch, while the view does not change.
type reader struct {
	*view
	seedFiles map[space.Path]file // the whole seed, if loaded
	seedPaths []space.Path        // the sorted keys of seedFiles
	overPaths []space.Path        // the sorted keys of over, if loaded
	ancestors map[space.Path]file // what filesAbove has looked up
}

func (v *view) reader(ctx context.Context, paths int) (*reader, error) {
	r := &reader{view: v, ancestors: map[space.Path]file{}}
	if paths <= loadAbove {
		return r, nil
	}
	all, err := v.seeder.Files(ctx, v.id, v.seed, "")
	if err != nil && fault.CodeOf(err) != fault.Damaged {
		return nil, err
	}
	r.seedFiles = make(map[space.Path]file, len(all))
	r.seedPaths = make([]space.Path, 0, len(all))
	for _, f := range all {
		r.seedFiles[f.Path] = file{f.Blob, f.Mode}
		r.seedPaths = append(r.seedPaths, f.Path)
	}
	slices.Sort(r.seedPaths)
	return r, nil
}

func (r *reader) get(ctx context.Context, p space.Path) (file, error) {
	if r.seedFiles == nil {
		return r.view.get(ctx, p)
	}
	if f, ok := r.over[p]; ok {
		return f, nil
	}
	return r.seedFiles[p], nil
}

// filesAbove returns the view's files at paths where p needs directories.
func (r *reader) filesAbove(ctx context.Context, p space.Path) ([]space.Path, error) {
	var found []space.Path
	for i := range len(p) {
		if p[i] != '/' {
			continue
		}
		dir := p[:i]
		f, known := r.ancestors[dir]
		if !known {
			var err error
			if f, err = r.get(ctx, dir); err != nil {
				return nil, err
			}
			r.ancestors[dir] = f
		}
		if f.exists() {
			found = append(found, dir)
		}
	}
	return found, nil
}

// under returns the files that the view has below the directory p. With seedOnly it leaves
// out files that were committed or applied since the sandbox started.
func (r *reader) under(ctx context.Context, p space.Path, seedOnly bool) (map[space.Path]file, error) {
	found := map[space.Path]file{}
	if r.seedFiles != nil {
		for _, q := range below(r.seedPaths, p) {
			found[q] = r.seedFiles[q]
		}
	} else {
		list, err := r.seeder.Files(ctx, r.id, r.seed, p)
		if err != nil && fault.CodeOf(err) != fault.Damaged {
			return nil, err
		}
		for _, f := range list {
			if strings.HasPrefix(string(f.Path), string(p)+"/") {
				found[f.Path] = file{f.Blob, f.Mode}
			}
		}
	}
	if r.overPaths == nil {
		r.overPaths = make([]space.Path, 0, len(r.over))
		for q := range r.over {
			r.overPaths = append(r.overPaths, q)
		}
		slices.Sort(r.overPaths)
	}
	for _, q := range below(r.overPaths, p) {
		if f := r.over[q]; f.exists() && !seedOnly {
			found[q] = f
		} else {
			delete(found, q)
		}
	}
	return found, nil
}

// below returns the part of sorted that lies under the directory p.
func below(sorted []space.Path, p space.Path) []space.Path {
	from := p + "/"
	to := p + "0" // the byte after '/'
	i := sort.Search(len(sorted), func(i int) bool { return sorted[i] >= from })
	j := sort.Search(len(sorted), func(i int) bool { return sorted[i] >= to })
	return sorted[i:j]
}
