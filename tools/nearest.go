package tools

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"satchel/internal/editdistance"
	"satchel/internal/space"
)

// nearest returns the known word that s most likely means, or "".
func nearest(s string, known []string) string {
	best, bestD := "", 1<<30
	low := strings.ToLower(clip(s, 64))
	for _, k := range known {
		limit := max(1, len(k)/3)
		d := editdistance.Within(low, strings.ToLower(k), limit)
		if strings.HasPrefix(k, low) && len(low) >= 3 || strings.HasPrefix(low, k) && len(k) >= 3 {
			d = min(d, 1)
		}
		if d <= limit && d < bestD {
			best, bestD = k, d
		}
	}
	return best
}

// nearPaths returns up to n paths that a missing path may mean: first the same name in
// other directories, then similar names.
func nearPaths(missing string, files []space.Entry, n int) []space.Path {
	type candidate struct {
		p     space.Path
		score int
	}
	low := strings.ToLower(strings.Trim(missing, "/"))
	base := path.Base(low)
	stem := stemOf(base)
	if low == "" || len(low) > space.MaxPathBytes {
		return nil
	}
	var found []candidate
	for _, f := range files {
		fl := strings.ToLower(string(f.Path))
		fb := path.Base(fl)
		fs := stemOf(fb)
		score := -1
		switch {
		case fl == low:
			score = 0
		case strings.HasSuffix(fl, "/"+low):
			score = 1
		case fb == base:
			score = 2
		case fs == stem:
			score = 3
		case len(stem) >= 3 && strings.Contains(fs, stem) || len(fs) >= 4 && strings.Contains(stem, fs):
			score = 5
		default:
			// Skip names that differ too much in length to be similar. Typing errors in very
			// long names are unlikely. A name of one or two letters is unrecognizable after a
			// single error.
			if gap := len(fs) - len(stem); gap <= 3 && gap >= -3 && len(stem) >= 3 && len(stem) <= 64 {
				limit := max(1, len(stem)/4)
				if d := editdistance.Within(stem, fs, limit); d <= limit {
					score = 3 + d
				}
			}
		}
		if score >= 0 {
			found = append(found, candidate{f.Path, score})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(len(a.p), len(b.p)), cmp.Compare(a.p, b.p))
	})
	var out []space.Path
	for _, c := range found[:min(n, len(found))] {
		out = append(out, c.p)
	}
	return out
}

// stemOf returns a file's name without its extension. A dot at the start does not begin an
// extension.
func stemOf(base string) string {
	if stem := strings.TrimSuffix(base, path.Ext(base)); stem != "" {
		return stem
	}
	return base
}
