package sources

import (
	"context"
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// snapshot lists the files of a source at a commit, sorted by path. It never changes.
// Paths are relative to the published directory.
type snapshot struct {
	commit space.CommitID
	files  []space.Entry
	links  map[space.Path]string // the targets of symbolic links
	bytes  int64
	left   int // the number of links and names that are left out
	blobs  map[space.BlobID]bool
}

// read returns the snapshot of a source at a commit of its space.
func (m *Manager) read(ctx context.Context, s space.Source, at space.CommitID) (*snapshot, error) {
	all, err := m.o.Store.Files(ctx, s.Space, at, s.Dir)
	if err != nil {
		return nil, err
	}
	out := &snapshot{commit: at, links: map[space.Path]string{}, blobs: make(map[space.BlobID]bool, len(all))}
	for _, f := range all {
		rel, ok := relative(s.Dir, f.Path)
		if !ok {
			continue
		}
		file := f
		file.Path = rel
		if f.Mode == space.Symlink {
			if f.Size > space.MaxPathBytes {
				continue
			}
			target, err := m.o.Store.ReadBlob(ctx, s.Space, f.Blob)
			if err != nil {
				return nil, err
			}
			if space.CheckSymlink(rel, string(target)) != nil {
				continue // the link leads out of the directory
			}
			out.links[rel] = string(target)
		}
		out.files = append(out.files, file)
		out.bytes += f.Size
		out.blobs[f.Blob] = true
	}
	out.left = len(all) - len(out.files)
	slices.SortFunc(out.files, func(a, b space.Entry) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return out, nil
}

// relative returns the path p of a space relative to dir. It returns false if p is not below
// dir, or is invalid, as paths in imported histories may be.
func relative(dir, p space.Path) (space.Path, bool) {
	rest := string(p)
	if dir != "" {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, string(dir)+"/"); !ok {
			return "", false
		}
	}
	rel, err := space.ParsePath(rest)
	return rel, err == nil
}

func (sn *snapshot) find(p space.Path) (space.Entry, bool) {
	i, ok := slices.BinarySearchFunc(sn.files, p, func(f space.Entry, p space.Path) int { return strings.Compare(string(f.Path), string(p)) })
	if !ok {
		return space.Entry{}, false
	}
	return sn.files[i], true
}

// under returns the files below a directory; "" is the source's root.
func (sn *snapshot) under(dir space.Path) []space.Entry {
	if dir == "" {
		return sn.files
	}
	prefix := string(dir) + "/"
	from, _ := slices.BinarySearchFunc(sn.files, prefix, func(f space.Entry, p string) int { return strings.Compare(string(f.Path), p) })
	n := 0
	for n < len(sn.files)-from && strings.HasPrefix(string(sn.files[from+n].Path), prefix) {
		n++
	}
	return sn.files[from : from+n]
}

func (sn *snapshot) children(dir space.Path) []space.Entry {
	prefix := ""
	if dir != "" {
		prefix = string(dir) + "/"
	}
	var out []space.Entry
	seen := map[space.Path]bool{}
	for _, f := range sn.under(dir) {
		name, _, deeper := strings.Cut(strings.TrimPrefix(string(f.Path), prefix), "/")
		switch p := space.Path(prefix + name); {
		case !deeper:
			out = append(out, f)
		case !seen[p]:
			seen[p] = true
			out = append(out, space.Entry{Path: p, Dir: true})
		}
	}
	slices.SortFunc(out, func(a, b space.Entry) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return out
}

// same reports whether two snapshots have the same files.
func (sn *snapshot) same(o *snapshot) bool { return o != nil && slices.Equal(sn.files, o.files) }

// diff lists the differences between two snapshots; from may be nil.
func diff(from, to *snapshot) []space.FileChange {
	var old []space.Entry
	if from != nil {
		old = from.files
	}
	cur := to.files
	var out []space.FileChange
	for i, j := 0, 0; i < len(old) || j < len(cur); {
		switch {
		case j == len(cur) || i < len(old) && old[i].Path < cur[j].Path:
			out = append(out, space.FileChange{Path: old[i].Path, Status: space.Deleted, Old: old[i].Blob, OldMode: old[i].Mode})
			i++
		case i == len(old) || cur[j].Path < old[i].Path:
			out = append(out, cur[j].Added())
			j++
		default:
			if old[i] != cur[j] {
				c := cur[j].Added()
				c.Status, c.Old, c.OldMode = space.Modified, old[i].Blob, old[i].Mode
				out = append(out, c)
			}
			i, j = i+1, j+1
		}
	}
	return out
}

func noFile(p space.Path) error {
	return fault.New(fault.NotFound, "There is no %q in this source.", string(p))
}
