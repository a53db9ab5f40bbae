package tools

import (
	"context"
	"path"
	"strconv"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// A ref is a reference to a document: a path, with optional lines or a heading after it.
// The same text means the same in search, read, fetch and bash.
type ref struct {
	path    string // relative to the space or, if library is set, to /library; empty for the root
	dir     bool   // written with a slash at its end
	library bool   // the document is in the library
	// Set for a file if the caller gave lines or a heading:
	from, to int // the lines, counted from 1; to is included, and 0 means the end
	heading  string
}

// parseRef reads a path without lines or a heading. It removes /space/ or ./ at the start
// and a slash at the end, which do not change the meaning of the path. The error is a
// fault.Invalid.
func parseRef(s string) (ref, error) {
	var r ref
	p := strings.TrimSpace(s)
	switch {
	case p == "/library" || strings.HasPrefix(p, "/library/"):
		r.library = true
		p = strings.TrimPrefix(p, "/library")
	case p == "/space" || strings.HasPrefix(p, "/space/"):
		p = strings.TrimPrefix(p, "/space")
	case strings.HasPrefix(p, "/") && p != "/":
		rel := strings.TrimLeft(p, "/")
		return r, fault.New(fault.Invalid, "The path %s is outside of the space and the library. Paths are relative to the space: %s",
			strconv.Quote(clip(s, 100)), clip(rel, 100))
	}
	p = strings.TrimPrefix(p, "/")
	for strings.HasPrefix(p, "./") {
		p = p[2:]
	}
	if p == "." {
		p = ""
	}
	if strings.HasSuffix(p, "/") {
		r.dir = true
		p = strings.TrimSuffix(p, "/")
	}
	if p == "" {
		r.dir = true
		return r, nil
	}
	valid, err := space.ParsePath(p)
	if err != nil {
		return r, err
	}
	r.path = string(valid)
	return r, nil
}

func (r ref) String() string {
	s := r.path
	if r.dir && s != "" {
		s += "/"
	}
	switch {
	case r.library:
		return "/library/" + s
	case s == "":
		return "/space/"
	}
	return s
}

// linesFromOne is how many lines "path:12" means. A caller that writes this has a match of
// grep and wants to see its context.
const linesFromOne = 40

// splitLines splits "path:12-40", "path:12-" (up to the end of the file; to is 0) or "path:12"
// (linesFromOne lines). ok is false if s does not end in one of these ways.
func splitLines(s string) (p string, from, to int, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return "", 0, 0, false
	}
	first, last, ranged := strings.Cut(s[i+1:], "-")
	from, ok = lineNumber(first)
	if ok && ranged && last != "" {
		to, ok = lineNumber(last)
	}
	if ok && !ranged && from > 0 {
		to = from + linesFromOne - 1
	}
	if !ok {
		return "", 0, 0, false
	}
	return s[:i], from, to, true
}

func lineNumber(s string) (int, bool) {
	if s == "" || len(s) > 9 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// resolve finds the document at a caller's path. A file whose name contains a colon or a #
// takes precedence over lines or a heading of another file. The returned view is of the
// space or of the source that contains the document. The errors include fault.Invalid, and
// fault.NotFound with the nearest paths.
func (v view) resolve(ctx context.Context, s string) (view, ref, space.Entry, error) {
	whole, err := parseRef(s)
	if err != nil {
		return v, whole, space.Entry{}, err
	}
	in, e, err := v.find(ctx, whole)
	if err == nil || fault.CodeOf(err) != fault.NotFound {
		return in, whole, e, err
	}
	for _, try := range suffixed(s) {
		part, perr := parseRef(try.path)
		if perr != nil {
			continue
		}
		in, e, ferr := v.find(ctx, part)
		if ferr != nil && fault.CodeOf(ferr) != fault.NotFound {
			return in, part, e, ferr
		}
		if ferr != nil || e.Dir {
			continue
		}
		part.from, part.to, part.heading = try.from, try.to, try.heading
		if part.heading == "" && (part.from == 0 || part.to != 0 && part.to < part.from) {
			return in, part, e, fault.New(fault.Invalid, "The line range of %s is invalid: write path:from-to, counted from 1.", strconv.Quote(clip(s, 100)))
		}
		return in, part, e, nil
	}
	return v, whole, space.Entry{}, v.missing(ctx, s, whole)
}

// suffixed returns the ways to split s into a path and lines or a heading.
func suffixed(s string) []ref {
	var tries []ref
	if p, from, to, ok := splitLines(s); ok {
		tries = append(tries, ref{path: p, from: from, to: to})
	}
	for _, i := range []int{strings.LastIndexByte(s, '#'), strings.IndexByte(s, '#')} {
		if i > 0 && i+1 < len(s) {
			tries = append(tries, ref{path: s[:i], heading: s[i+1:]})
		}
	}
	return tries
}

const maxLinks = 8

// find finds a path in the view that contains it.
func (v view) find(ctx context.Context, r ref) (view, space.Entry, error) {
	if r.library {
		return v.findShared(ctx, r)
	}
	e, err := v.findIn(ctx, r)
	return v, e, err
}

// findIn finds a path in this view. It follows a symbolic link to a target in the view.
func (v view) findIn(ctx context.Context, r ref) (space.Entry, error) {
	if r.path == "" {
		return space.Entry{Dir: true}, nil
	}
	p := space.Path(r.path)
	for range maxLinks {
		e, err := v.lookup(ctx, p)
		if err != nil || e.Dir || e.Mode != space.Symlink {
			if err == nil && r.dir && !e.Dir {
				err = fault.New(fault.NotFound, "%s is a file, not a directory.", p)
			}
			return e, err
		}
		target, err := v.content(ctx, e)
		if err != nil {
			return space.Entry{}, err
		}
		if err := space.CheckSymlink(p, string(target)); err != nil {
			return space.Entry{}, err
		}
		to := path.Join(path.Dir(string(p)), string(target))
		if to == "." {
			return space.Entry{Dir: true}, nil
		}
		if p, err = space.ParsePath(to); err != nil {
			return space.Entry{}, err
		}
	}
	return space.Entry{}, fault.New(fault.Invalid, "%s is a symbolic link that leads through too many other links.", r.path)
}

// missing returns the error for a missing path, with the nearest paths.
func (v view) missing(ctx context.Context, s string, r ref) error {
	if r.library {
		return v.missingShared(ctx, s, r)
	}
	files, err := v.allFiles(ctx)
	if err != nil {
		return err
	}
	plain := r.path
	for _, t := range suffixed(plain) {
		plain = t.path
		break
	}
	near := nearPaths(plain, files, 3)
	if len(near) == 0 {
		return fault.New(fault.NotFound, "There is no %s in the space.", strconv.Quote(clip(s, 200)))
	}
	names := make([]string, len(near))
	for i, p := range near {
		names[i] = string(p)
	}
	return fault.New(fault.NotFound, "There is no %s in the space. Did you mean %s?", strconv.Quote(clip(s, 200)), strings.Join(names, " or "))
}
