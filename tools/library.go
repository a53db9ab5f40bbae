package tools

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// Library holds the sources that others share with a user, read-only. In place of a space's id,
// the methods of Workspace take the Collection of a space.Source.
type Library interface {
	// Sources lists the sources that the user may read now. One call of a tool calls Sources at
	// most once.
	Sources(ctx context.Context, user space.UserID) ([]space.Source, error)
	Workspace
}

// LibraryOnly is the empty space of callers that have only the library.
const LibraryOnly = space.SpaceID("l_library")

// docsDir is the directory of the library that contains the sources.
const docsDir = "docs"

// shared is the library during one call.
type shared struct {
	loaded  bool
	sources []space.Source
}

// Seen keeps the library for successive calls of one user. All calls use the snapshots that
// the first call found. The zero value has no snapshots yet.
type Seen struct{ library shared }

// Of returns a Seen of an open library.
func Of(l *service.Library) *Seen { return &Seen{shared{loaded: true, sources: l.Sources()}} }

// library returns the library for this call. Calls with the same Seen share one library.
func (c Caller) library() *shared {
	if c.Seen == nil {
		return new(shared)
	}
	return &c.Seen.library
}

// sources lists the sources that the caller may read, sorted by id. It reads the list at most once
// in each call.
func (v view) sources(ctx context.Context) ([]space.Source, error) {
	if v.library.loaded || v.s.o.Library == nil {
		return v.library.sources, nil
	}
	all, err := v.s.o.Library.Sources(ctx, v.user)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b space.Source) int { return strings.Compare(a.ID, b.ID) })
	v.library.loaded, v.library.sources = true, all
	return all, nil
}

// of returns the view of a source, with paths relative to the source.
func (v view) of(s space.Source) view {
	return view{s: v.s, w: v.s.o.Library, id: s.Collection, at: s.Commit, all: new([]space.Entry), user: v.user, library: v.library, source: &s}
}

// mount returns the prefix of the view's paths in answers.
func (v view) mount() string {
	if v.source == nil {
		return ""
	}
	return v.source.Mount() + "/"
}

// inLibrary splits a path of the library into the source's id and the path in the source.
// ok is false if the path is not in a source.
func (r ref) inLibrary() (source, rest string, ok bool) {
	dir, p, _ := strings.Cut(r.path, "/")
	source, rest, _ = strings.Cut(p, "/")
	return source, rest, r.library && dir == docsDir && source != ""
}

// inside returns r's path relative to its space or source.
func (r ref) inside() string {
	if _, rest, ok := r.inLibrary(); ok {
		return rest
	}
	return r.path
}

// findShared is like find, for a path of the library.
func (v view) findShared(ctx context.Context, r ref) (view, space.Entry, error) {
	all, err := v.sources(ctx)
	if err != nil {
		return v, space.Entry{}, err
	}
	if r.path == "" || r.path == docsDir && len(all) > 0 {
		return v, space.Entry{Dir: true}, nil
	}
	if len(all) == 0 {
		return v, space.Entry{}, fault.New(fault.NotFound, "The library is empty: nobody has shared anything with this user.")
	}
	id, rest, ok := r.inLibrary()
	i := slices.IndexFunc(all, func(s space.Source) bool { return s.ID == id })
	if !ok || i < 0 {
		return v, space.Entry{}, fault.New(fault.NotFound, "There is no %s.", strconv.Quote(clip(r.String(), 200)))
	}
	in := v.of(all[i])
	if in.at == "" {
		return in, space.Entry{}, fault.New(fault.NotFound, "The source %s is not ready yet. Try again in a moment.", id)
	}
	inner := ref{path: rest, dir: r.dir && rest != ""}
	e, err := in.findIn(ctx, inner)
	return in, e, err
}

// missingShared returns the error for a missing path of the library, with the nearest
// paths.
func (v view) missingShared(ctx context.Context, s string, r ref) error {
	all, err := v.sources(ctx)
	if err != nil {
		return err
	}
	quoted := strconv.Quote(clip(s, 200))
	if len(all) == 0 {
		return fault.New(fault.NotFound, "There is no %s: the library is empty, because nobody has shared anything with this user.", quoted)
	}
	id, rest, ok := r.inLibrary()
	i := slices.IndexFunc(all, func(s space.Source) bool { return s.ID == id })
	if !ok || i < 0 {
		names := make([]string, len(all))
		for k, s := range all {
			names[k] = s.ID
		}
		if near := nearest(id, names); near != "" {
			return fault.New(fault.NotFound, "There is no %s. Did you mean /library/%s/%s?", quoted, docsDir, near)
		}
		return fault.New(fault.NotFound, "There is no %s. The sources are: %s.", quoted, clip(strings.Join(names, ", "), 500))
	}
	in := v.of(all[i])
	if in.at == "" {
		return fault.New(fault.NotFound, "The source %s is not ready yet. Try again in a moment.", id)
	}
	files, err := in.allFiles(ctx)
	if err != nil {
		return err
	}
	for _, t := range suffixed(rest) {
		rest = t.path
		break
	}
	var near []string
	for _, p := range nearPaths(rest, files, 3) {
		near = append(near, in.mount()+string(p))
	}
	if len(near) == 0 {
		return fault.New(fault.NotFound, "There is no %s in the source %s.", quoted, id)
	}
	return fault.New(fault.NotFound, "There is no %s in the source %s. Did you mean %s?", quoted, id, strings.Join(near, " or "))
}

// listShared lists /library and /library/docs.
func (v view) listShared(ctx context.Context, r ref) (*listing, error) {
	all, err := v.sources(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return &listing{title: r.String() + " (directory, empty)", hint: "nobody has shared anything with this user"}, nil
	}
	l := &listing{total: 1, names: []string{docsDir + "/"}}
	if r.path != "" {
		l.total, l.names, l.hint = len(all), nil, "name a source"
		for _, s := range all[:min(len(all), v.s.o.Limits.ListEntries)] {
			l.names = append(l.names, s.ID+"/ ("+v.aboutSource(s)+")")
		}
	}
	l.title = fmt.Sprintf("%s (directory: %s, 0 files)", r, plural(l.total, "directory", "directories"))
	return l, nil
}

// aboutSource describes a source in one line.
func (v view) aboutSource(s space.Source) string {
	text := cmp.Or(oneLine(s.Title, 120), s.ID)
	if d := oneLine(s.Description, 300); d != "" {
		text += " — " + d
	}
	if suspicious(s.Mount()+"/", text) {
		text += " [" + commandsRemark + "]"
	}
	// The publisher chose the title, but the name of the owner comes from the server.
	if owner := oneLine(s.Owner, 64); owner != "" && s.By != v.user {
		text += " (shared by " + owner + ")"
	}
	return text
}

// globShared calls add with each path of the library that the pattern matches.
func (v view) globShared(ctx context.Context, g glob, add func(path string)) error {
	all, err := v.sources(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Commit == "" || !couldMatch(g, s.ID) {
			continue
		}
		in := v.of(s)
		under := space.Path("")
		if root := string(g.root()); strings.HasPrefix(root, docsDir+"/"+s.ID+"/") {
			under = space.Path(strings.TrimPrefix(root, docsDir+"/"+s.ID+"/"))
		}
		files, err := in.files(ctx, under)
		if err != nil {
			return err
		}
		for _, f := range files {
			if p := docsDir + "/" + s.ID + "/" + string(f.Path); g.match(space.Path(p)) {
				add("/library/" + p)
			}
		}
	}
	return nil
}

// couldMatch reports whether a pattern of the library may match files of a source.
func couldMatch(g glob, id string) bool {
	for i, want := range []string{docsDir, id} {
		if i >= len(g.segments) {
			return false
		}
		if g.segments[i] == "**" {
			return true
		}
		if ok, _ := path.Match(g.segments[i], want); !ok {
			return false
		}
	}
	return true
}

// LibraryURL returns the URL of the page that shows a file of a source to its readers. p is
// the file's path with the source's mount.
func LibraryURL(base, p string) string {
	segs := strings.Split(strings.TrimPrefix(p, "/"), "/")
	for i, s := range segs {
		segs[i] = url.PathEscape(s)
	}
	return strings.TrimSuffix(base, "/") + "/" + strings.Join(segs, "/")
}

// origin returns the base of the page URLs in a caller's answers.
func (s *Registry) origin(c Caller) string { return cmp.Or(c.Origin, s.o.PublicURL()) }

// pageURL returns the URL of a document's page. p is the path as callers see it.
func pageURL(base string, id space.SpaceID, p string) string {
	if strings.HasPrefix(p, "/library/") {
		return LibraryURL(base, p)
	}
	return FileURL(base, id, p)
}
