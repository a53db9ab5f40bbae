package files

import (
	"cmp"
	"net/http"
	"path"
	"slices"
	"strings"

	"satchel/internal/space"
	"satchel/web"
)

// jumpRows limits the files that the palette (the search dialog) shows.
const jumpRows = 8

type jumpAnswer struct {
	Files []jumpFile `json:"files"`
}

type jumpFile struct {
	Path string `json:"path"` // as pages show it
	URL  string `json:"url"`
}

// jump handles GET /spaces/{id}/jump?q=. It answers with the files whose paths contain the
// words of q, as JSON for the palette.
func (s *pages) jump(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	out := jumpAnswer{Files: []jumpFile{}}
	if q := v.R.URL.Query().Get("q"); web.Textual(q) && len(q) <= maxQuery {
		head, err := m.Head(v.R.Context())
		if err != nil {
			return err
		}
		all, err := m.Files(v.R.Context(), head, "")
		if err != nil {
			return err
		}
		for _, p := range matchPaths(all, q) {
			out.Files = append(out.Files, jumpFile{web.ShownPath(string(p), 120), web.PageURL(m.ID, "files", p, "")})
		}
	}
	s.JSON(v, http.StatusOK, out)
	return nil
}

// matchPaths returns the files whose paths contain every word of q, in any case: files whose
// names begin with q first, then files whose names contain its first word, then short paths.
func matchPaths(all []space.Entry, q string) []space.Path {
	q = strings.ToLower(strings.TrimSpace(q))
	words := strings.Fields(q)
	if len(words) == 0 {
		return nil
	}
	type match struct {
		path space.Path
		rank int
	}
	var found []match
	for _, e := range all {
		low := strings.ToLower(string(e.Path))
		if e.Dir || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(low, w) }) {
			continue
		}
		if _, err := space.ParsePath(string(e.Path)); err != nil {
			continue // an imported history may have names that no address can hold
		}
		name, rank := path.Base(low), 2
		switch {
		case strings.HasPrefix(name, q):
			rank = 0
		case strings.Contains(name, words[0]):
			rank = 1
		}
		found = append(found, match{e.Path, rank})
	}
	slices.SortFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(len(a.path), len(b.path)), cmp.Compare(a.path, b.path))
	})
	var out []space.Path
	for _, m := range found[:min(len(found), jumpRows)] {
		out = append(out, m.path)
	}
	return out
}
