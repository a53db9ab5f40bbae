package tools

import (
	"path"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// isGlob reports whether a path contains a special character of patterns.
func isGlob(s string) bool { return strings.ContainsAny(s, "*?[") }

// glob is a pattern for whole paths: *, ? and [a-z] match within a name, and ** matches any
// number of directories.
type glob struct{ segments []string }

// parseGlob checks a pattern. The error is a fault.Invalid.
func parseGlob(s string) (glob, error) {
	g := glob{strings.Split(s, "/")}
	for _, seg := range g.segments {
		if seg == "**" {
			continue
		}
		if _, err := path.Match(seg, ""); err != nil {
			return g, fault.New(fault.Invalid, "The pattern %q is not complete: a [ needs its ].", clip(s, 100))
		}
	}
	return g, nil
}

// root returns a directory that contains every match.
func (g glob) root() space.Path {
	n := 0
	for n < len(g.segments)-1 && !isGlob(g.segments[n]) {
		n++
	}
	return space.Path(strings.Join(g.segments[:n], "/"))
}

// match reports whether the pattern matches a path. Its time is proportional to the
// segments of the pattern times the segments of the path, even with many **. At each name
// it keeps the set of pattern segments that could match next.
func (g glob) match(p space.Path) bool {
	n := len(g.segments)
	at := make([]bool, n+1)
	next := make([]bool, n+1)
	at[0] = true
	g.skip(at)
	for name := range strings.SplitSeq(string(p), "/") {
		clear(next)
		for i := range n {
			if !at[i] {
				continue
			}
			if g.segments[i] == "**" {
				next[i] = true
			} else if ok, _ := path.Match(g.segments[i], name); ok {
				next[i+1] = true
			}
		}
		at, next = next, at
		g.skip(at)
	}
	return at[n]
}

// skip marks the segment after each marked **, because a ** can match nothing.
func (g glob) skip(at []bool) {
	for i, seg := range g.segments {
		if at[i] && seg == "**" {
			at[i+1] = true
		}
	}
}
