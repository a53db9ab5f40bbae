package files

import (
	"cmp"
	"context"
	"net/http"
	"path"
	"slices"
	"strings"

	"satchel/internal/space"
	"satchel/web"
)

// sideNames limits the names of one directory in the tree beside a page.
const sideNames = 100

// side is the tree of files beside a page.
type side struct {
	Nodes []web.Node
	// Load is the address from which a script loads the names in a directory, to open it in
	// place. Files is the address of the files.
	Load, Files string
	Query       string // the part of an address that names the commit; "" for head
}

// lists reads each directory of a commit at most once for a page.
type lists struct {
	l   web.Location
	ctx context.Context //nolint:containedctx // lives as long as the request
	all map[space.Path][]space.Entry
	// slugs are the entries of directories by name and by slug; see namesOf.
	slugs map[space.Path]map[string]space.Entry
	// missed counts the failed lookups of rooted links; see find.
	missed int
}

func listsOf(v *web.Visit, l web.Location) *lists {
	return &lists{l: l, ctx: v.R.Context(), all: map[space.Path][]space.Entry{}, slugs: map[space.Path]map[string]space.Entry{}}
}

// of returns the entries of a directory, directories first, then sorted by name.
func (d *lists) of(dir space.Path) ([]space.Entry, error) {
	if all, ok := d.all[dir]; ok {
		return all, nil
	}
	all, err := d.l.Space.Children(d.ctx, d.l.Commit, dir)
	if err != nil {
		return nil, err
	}
	lower := make(map[space.Path]string, len(all))
	for _, e := range all {
		lower[e.Path] = strings.ToLower(string(e.Path))
	}
	slices.SortStableFunc(all, func(a, b space.Entry) int {
		if a.Dir != b.Dir {
			if a.Dir {
				return -1
			}
			return 1
		}
		return cmp.Compare(lower[a.Path], lower[b.Path])
	})
	d.all[dir] = all
	return all, nil
}

// sideOf returns the tree with the directories above a location open.
func (s *pages) sideOf(d *lists) (*side, error) {
	nodes, err := d.nodes("")
	if err != nil {
		return nil, err
	}
	id := d.l.Space.ID
	return &side{Nodes: nodes, Load: web.PageURL(id, "tree", "", ""), Files: web.PageURL(id, "files", "", ""), Query: web.AtQuery(d.l.At)}, nil
}

// nodes returns the names in a directory. Each directory on the way to the location is open: its
// node also has the names in that directory.
func (d *lists) nodes(dir space.Path) ([]web.Node, error) {
	all, err := d.of(dir)
	if err != nil {
		return nil, err
	}
	here := string(d.l.Path)
	from, to := window(all, here)
	out := make([]web.Node, 0, to-from+2)
	more := func(n int) {
		if n > 0 {
			out = append(out, web.Node{More: n, URL: d.url(space.Entry{Path: dir, Dir: true})})
		}
	}
	more(from)
	for _, e := range all[from:to] {
		if _, err := space.ParsePath(string(e.Path)); err != nil {
			continue // an imported history may have names that no address can hold
		}
		n := web.Node{Name: web.ShownPath(path.Base(string(e.Path)), 60), URL: d.url(e), Dir: e.Dir, Here: string(e.Path) == here}
		if e.Dir && (n.Here || strings.HasPrefix(here, string(e.Path)+"/")) {
			if n.Children, err = d.nodes(e.Path); err != nil {
				return nil, err
			}
			n.Open = true
		}
		out = append(out, n)
	}
	more(len(all) - to)
	return out, nil
}

func (d *lists) url(e space.Entry) string {
	u := web.PageURL(d.l.Space.ID, "files", e.Path, "")
	if e.Dir && e.Path != "" {
		u += "/"
	}
	return u + web.AtQuery(d.l.At)
}

// window returns which names of a long directory the tree shows: those around the name that leads
// to the path here, or the first names if no name leads there.
func window(all []space.Entry, here string) (from, to int) {
	at := slices.IndexFunc(all, func(e space.Entry) bool {
		return string(e.Path) == here || e.Dir && strings.HasPrefix(here, string(e.Path)+"/")
	})
	from = min(max(0, at-sideNames/2), max(0, len(all)-sideNames))
	return from, min(len(all), from+sideNames)
}

type treeAnswer struct {
	Names []treeName `json:"names"`
}

type treeName struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url"`
	Dir  bool   `json:"dir,omitempty"`
	More int    `json:"more,omitempty"` // how many names are left out here
}

// branch handles GET /spaces/{id}/tree/{path...}. It answers with the names in a directory,
// as JSON for the tree.
func (s *pages) branch(v *web.Visit) error {
	l, err := s.Locate(v)
	if err != nil {
		return err
	}
	d := listsOf(v, l)
	d.l.Path = "" // no directory below is open
	nodes, err := d.nodes(l.Path)
	if err != nil {
		return web.Gone(err)
	}
	out := treeAnswer{Names: make([]treeName, 0, len(nodes))}
	for _, n := range nodes {
		out.Names = append(out.Names, treeName{n.Name, n.URL, n.Dir, n.More})
	}
	s.JSON(v, http.StatusOK, out)
	return nil
}
