package files

import (
	"path"
	"strings"

	"satchel/internal/space"
)

const (
	// linkDirs limits the directories that the links of one page read.
	linkDirs = 300
	// linkDrops is how many names at the beginning of a site's address may be missing in
	// the space, such as "docs/4.x".
	linkDrops = 3
	// linkMisses limits the failed lookups for the rooted links of one page (see find).
	linkMisses = 2000
)

// find returns the file or directory that a link of a page means. name is the path in the
// space that the link names; rooted reports that the link begins at the top of its site. If
// nothing is at name, find compares names as site generators do, without the extension and the
// leading number. For a rooted link, it then also looks below each directory above the page.
func (d *lists) find(name string, rooted bool) (found string, dir, ok bool) {
	if name == "" {
		return "", true, true
	}
	segs := strings.Split(name, "/")
	if e, ok := d.walk("", segs, false); ok {
		return string(e.Path), e.Dir, true
	}
	if e, ok := d.walk("", segs, true); ok {
		return string(e.Path), e.Dir, true
	}
	if !rooted {
		return "", false, false
	}
	for drop := 0; drop <= min(linkDrops, len(segs)-1); drop++ {
		for above := path.Dir(string(d.l.Path)); ; above = path.Dir(above) {
			if above == "." || above == "/" {
				above = ""
			}
			if d.missed >= linkMisses {
				return "", false, false
			}
			if e, ok := d.walk(space.Path(above), segs[drop:], true); ok {
				return string(e.Path), e.Dir, true
			}
			d.missed++
			if above == "" {
				break
			}
		}
	}
	return "", false, false
}

// walk follows names from a directory. If loose is set, it compares them as slugs.
func (d *lists) walk(dir space.Path, segs []string, loose bool) (space.Entry, bool) {
	var e space.Entry
	for i, seg := range segs {
		names, ok := d.namesOf(dir)
		if !ok {
			return e, false
		}
		if loose {
			seg = siteName(seg)
			if seg == "index" && i > 0 && i == len(segs)-1 {
				return e, true // the directory itself
			}
			e, ok = names["/"+seg]
		} else {
			e, ok = names[seg]
		}
		if !ok || !e.Dir && i < len(segs)-1 {
			return space.Entry{}, false
		}
		dir = e.Path
	}
	return e, true
}

// namesOf returns the entries of a directory by name, and by "/" and the slug of the name. A file
// takes precedence over a directory with the same slug.
func (d *lists) namesOf(dir space.Path) (map[string]space.Entry, bool) {
	if names, ok := d.slugs[dir]; ok {
		return names, names != nil
	}
	if len(d.slugs) >= linkDirs {
		return nil, false
	}
	all, err := d.of(dir)
	if err != nil {
		d.slugs[dir] = nil
		return nil, false
	}
	names := make(map[string]space.Entry, 2*len(all))
	for _, e := range all {
		base := path.Base(string(e.Path))
		names[base] = e
		key := "/" + siteName(base)
		if was, ok := names[key]; !ok || was.Dir && !e.Dir {
			names[key] = e
		}
	}
	d.slugs[dir] = names
	return names, true
}

// siteName returns the slug of a name, as in the address of a site: without the extension of a
// page and without the leading number that only sorts the pages.
func siteName(name string) string {
	name = strings.ToLower(name)
	for _, ext := range []string{".md", ".mdx", ".markdown", ".html"} {
		if stem, ok := strings.CutSuffix(name, ext); ok && stem != "" {
			name = stem
			break
		}
	}
	rest := strings.TrimLeft(name, "0123456789")
	if len(rest) < len(name) && len(rest) > 1 && strings.ContainsRune(".-_", rune(rest[0])) {
		return rest[1:]
	}
	return name
}
