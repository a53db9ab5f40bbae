package tools

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// maxCompletions limits the values of a Completion, as MCP requires (2025-11-25,
// server/utilities/completion).
const maxCompletions = 100

// Completion is a list of values for an argument, the likeliest first.
type Completion struct {
	Values []string
	Total  int // the number of matching values, which can be more than len(Values)
}

// CompletePath returns paths that begin with the value. If there are none, it returns paths that
// contain the value. If the value begins with a slash, the paths are of the sources, otherwise of
// the space. If c has no scope to read, the error is a fault.Forbidden.
func (s *Registry) CompletePath(ctx context.Context, c Caller, value string) (Completion, error) {
	if err := need(c, space.ScopeRead, "Completing a path"); err != nil {
		return Completion{}, err
	}
	v, err := s.view(ctx, c)
	if err != nil {
		return Completion{}, err
	}
	in, paths, err := v.candidates(ctx, value)
	if err != nil {
		return Completion{}, err
	}
	return complete(value, in.mount(), paths), nil
}

// candidates returns the paths that a value can mean, and the view that contains them. If
// the value is a path of the library but names no source yet, the paths are the directories
// of the sources.
func (v view) candidates(ctx context.Context, value string) (view, []space.Path, error) {
	in := v
	if rest, ok := strings.CutPrefix(value, "/library/"+docsDir+"/"); ok {
		id, _, named := strings.Cut(rest, "/")
		all, err := v.sources(ctx)
		if err != nil {
			return v, nil, err
		}
		i := slices.IndexFunc(all, func(s space.Source) bool { return named && s.ID == id })
		if i < 0 {
			return v, sourceMounts(all), nil
		}
		if in = v.of(all[i]); in.at == "" {
			return in, nil, nil
		}
	} else if strings.HasPrefix(value, "/") {
		all, err := v.sources(ctx)
		return v, sourceMounts(all), err
	}
	files, err := in.allFiles(ctx)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return in, nil, err
	}
	paths := make([]space.Path, 0, len(files))
	for _, f := range files {
		if plain(f) {
			paths = append(paths, f.Path)
		}
	}
	return in, paths, nil
}

// sourceMounts returns the directories of sources, each with a slash at the end.
func sourceMounts(all []space.Source) []space.Path {
	out := make([]space.Path, len(all))
	for i, s := range all {
		out[i] = space.Path(s.Mount() + "/")
	}
	return out
}

// complete selects the paths for a value. It ignores case.
func complete(value, mount string, paths []space.Path) Completion {
	value = strings.ToLower(value)
	part := strings.TrimPrefix(value, strings.ToLower(mount))
	var begin, contain []string
	for _, p := range paths {
		full := mount + string(p)
		switch low := strings.ToLower(full); {
		case strings.HasPrefix(low, value):
			begin = append(begin, full)
		case strings.Contains(strings.ToLower(string(p)), part):
			contain = append(contain, full)
		}
	}
	found := begin
	if len(found) == 0 {
		found = contain
	}
	// Paths with fewer slashes come first, so the pages of a directory precede those of its
	// subdirectories.
	slices.SortStableFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), strings.Compare(a, b))
	})
	return Completion{Values: found[:min(len(found), maxCompletions)], Total: len(found)}
}
