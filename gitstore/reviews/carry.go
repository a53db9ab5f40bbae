package reviews

import (
	"path"
	"slices"
	"strings"

	"satchel/internal/space"
)

// carry is what goes along with a file that moved: what a person knows of it, and
// who made it what it is.
type carry struct {
	known content
	by    maker
}

// carries finds the files that moved, by their content: of those that are alike, the
// one at the same place below a directory that moved. Where there is none, what a
// person knows of one goes along only if they know them all. all are the files of
// the commit. Of one that a person wrote, in which a file that waits is gone, a new
// file may be that one with more changes: it waits too.
func carries(files []change, all []space.FileChange, rows map[space.Path]*row, by maker, person bool) map[space.Path]carry {
	out := map[space.Path]carry{}
	known := func(g change) content {
		if x := rows[g.path]; x != nil {
			return x.baseline()
		}
		return content{}
	}
	gone := map[content][]change{}
	where := map[space.Path]change{}
	for _, f := range files {
		if f.now.blob == "" {
			gone[f.old] = append(gone[f.old], f)
			where[f.path] = f
		}
	}
	put := func(f, g change, sure bool) {
		k := carry{by: by, known: known(g)}
		if x := rows[g.path]; x != nil && k.known != f.now && x.CommitID != "" {
			k.by = x.maker()
		}
		if !sure && k.known == f.now {
			k.known = content{}
		}
		out[f.path] = k
		gone[g.old] = slices.DeleteFunc(gone[g.old], func(o change) bool { return o.path == g.path })
	}
	from, to := moved(all)
	var other []change
	for _, f := range files {
		if f.now.blob == "" {
			continue
		}
		rest, ok := strings.CutPrefix(string(f.path), to)
		if g := where[space.Path(from+rest)]; ok && g.old == f.now && g.old.blob != "" {
			put(f, g, true)
		} else {
			other = append(other, f)
		}
	}
	mixed := map[content]bool{} // a person knows some of those that are alike
	for k, list := range gone {
		for _, g := range list {
			if (known(g) == k) != (known(list[0]) == k) {
				mixed[k] = true
			}
		}
	}
	var rest []change
	for _, f := range other {
		if g, ok := likest(gone[f.now], f); ok {
			put(f, g, !mixed[f.now])
		} else {
			rest = append(rest, f)
		}
	}
	if !person {
		return out
	}
	var waited []change
	for _, f := range files {
		if f.now.blob == "" && known(f) != f.old && slices.ContainsFunc(gone[f.old], func(g change) bool { return g.path == f.path }) {
			waited = append(waited, f)
		}
	}
	if len(waited) == 0 {
		return out
	}
	for _, f := range rest {
		if f.old.blob != "" {
			continue
		}
		k := carry{by: by}
		var named []change
		for _, g := range waited {
			if path.Base(string(g.path)) == path.Base(string(f.path)) {
				named = append(named, g)
			}
		}
		if g, ok := likest(named, f); ok {
			k.known = known(g)
			waited = slices.DeleteFunc(waited, func(o change) bool { return o.path == g.path })
		}
		out[f.path] = k
	}
	return out
}

// moved returns the directories, each with its slash, that all which a commit took
// away was in, and all that it made is in, where the commit moved one to the other:
// all that was below is there again.
func moved(all []space.FileChange) (from, to string) {
	var gone, made []string
	now := map[string]space.BlobID{}
	for _, f := range all {
		now[string(f.Path)] = f.New
		switch {
		case f.New == "":
			gone = append(gone, string(f.Path))
		case f.Old == "":
			made = append(made, string(f.Path))
		}
	}
	from, to = shared(gone), shared(made)
	for _, f := range all {
		if f.New == "" && now[to+strings.TrimPrefix(string(f.Path), from)] != f.Old {
			return "", ""
		}
	}
	return from, to
}

// shared is the directory that all paths are in, with its slash; "" is the root.
func shared(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	p := paths[0]
	for _, o := range paths[1:] {
		n := 0
		for n < len(p) && n < len(o) && p[n] == o[n] {
			n++
		}
		p = p[:n]
	}
	return p[:strings.LastIndexByte(p, '/')+1]
}

// likest returns the one whose path ends most like that of f.
func likest(list []change, f change) (best change, ok bool) {
	most := -1
	for _, g := range list {
		if n := sameEnd(string(g.path), string(f.path)); n > most {
			best, most, ok = g, n, true
		}
	}
	return best, ok
}

// sameEnd counts the bytes in which two paths end alike.
func sameEnd(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
