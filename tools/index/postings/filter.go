package postings

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"regexp"
	"satchel/tools/index/parse"
	"satchel/tools/index/query"
	"strings"
)

// Filter is a condition on documents. The zero Filter selects all documents.
type Filter struct {
	cond string
	args []any
}

// Empty reports whether every document meets the filter.
func (f Filter) Empty() bool { return f.cond == "" }

// Filter prepares the filters of a query. SQLite cannot express path filters exactly, so
// Filter resolves them to the ids of the documents whose paths match. Therefore a filter
// always applies before results are limited. mount is the directory under which paths are
// shown.
func (s *Snapshot) Filter(ctx context.Context, f query.Filters, mount string) (Filter, error) {
	var args []any
	var all []string
	add := func(c string, a ...any) {
		all = append(all, c)
		args = append(args, a...)
	}
	choice := func(column string, c query.Condition, match func(v string) (string, []any)) {
		for _, side := range []struct {
			values []string
			not    string
		}{{c.Is, ""}, {c.Not, "NOT "}} {
			var parts []string
			var vals []any
			for _, v := range side.values {
				p, a := match(v)
				parts = append(parts, p)
				vals = append(vals, a...)
			}
			if len(parts) > 0 {
				add(side.not+"("+strings.Join(parts, " OR ")+")", vals...)
			}
		}
	}
	choice("kind", f.Kind, func(v string) (string, []any) {
		return "kind = ?", []any{v}
	})
	choice("lang", f.Lang, func(v string) (string, []any) {
		return "(lang = ? OR lang GLOB ?)", []any{v, globLiteral(v) + "-*"}
	})
	// 5.1 finds pages for 5.1, 5.1.3, 5 and 5.x: a page for a version applies to all
	// versions within it.
	choice("version", f.Version, func(v string) (string, []any) {
		const within = "rtrim(rtrim(version, 'x'), '.')"
		return "(version = ? OR version GLOB ? OR version <> '' AND substr(?, 1, length(" + within + ") + 1) = " + within + " || '.')",
			[]any{v, globLiteral(v) + ".*", v}
	})
	choice("tag", f.Tag, func(v string) (string, []any) {
		return "instr(char(10) || lower(tags) || char(10), char(10) || ? || char(10)) > 0", []any{v}
	})
	if !f.Since.IsZero() {
		add("date >= ?", f.Since.Unix())
	}
	if !f.Before.IsZero() {
		add("date > 0 AND date < ?", f.Before.Unix())
	}
	for _, side := range []struct {
		globs []string
		not   string
	}{{f.Path.Is, ""}, {f.Path.Not, "NOT "}} {
		if len(side.globs) == 0 {
			continue
		}
		ids, err := s.matchPaths(ctx, side.globs, mount)
		if err != nil {
			return Filter{}, err
		}
		add("docs.id "+side.not+"IN (SELECT value FROM json_each(?))", ids)
	}
	return Filter{strings.Join(all, " AND "), args}, nil
}

// DocSet is the set of documents that meet a filter. A nil DocSet contains all documents.
type DocSet struct{ ids Bitmap }

// Has reports whether the set contains a document.
func (d *DocSet) Has(doc uint32) bool { return d == nil || d.ids.Has(int(doc)) }

// IDs returns the ids of the documents in the set, ascending, or nil for all documents.
func (d *DocSet) IDs() (ids []int64) {
	if d == nil {
		return nil
	}
	ids = []int64{}
	for i := range len(d.ids) * 64 {
		if d.ids.Has(i) {
			ids = append(ids, int64(i))
		}
	}
	return ids
}

// Select returns the documents that meet a filter.
func (s *Snapshot) Select(ctx context.Context, f Filter) (*DocSet, error) {
	if f.Empty() {
		return nil, nil
	}
	rows, err := s.tx.QueryContext(ctx, `SELECT id FROM docs WHERE `+f.cond, f.args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	d := &DocSet{NewBitmap(int(s.State.next) + 1)}
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		if id >= 0 && id <= s.State.next {
			d.ids.Set(int(id))
		}
	}
	return d, rows.Err()
}

// List returns at most limit documents that meet a filter. They are sorted by path if byPath is
// set, or else newest first. total counts all documents that meet the filter.
func (s *Snapshot) List(ctx context.Context, f Filter, byPath bool, limit int) (ids []int64, total int, err error) {
	cond, order := f.cond, "date DESC, path"
	if f.Empty() {
		cond = "TRUE"
	}
	if byPath {
		order = "path"
	}
	rows, err := s.tx.QueryContext(ctx, `SELECT id, count(*) OVER () FROM docs WHERE `+cond+` ORDER BY `+order+` LIMIT ?`, append(f.args, limit)...)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id, &total); err != nil {
			return nil, 0, err
		}
		ids = append(ids, id)
	}
	return ids, total, rows.Err()
}

// Any reports whether a document meets a filter, which must not be empty.
func (s *Snapshot) Any(ctx context.Context, f Filter) (any bool, err error) {
	err = s.tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM docs WHERE `+f.cond+`)`, f.args...).Scan(&any)
	return any, err
}

// globLiteral escapes the wildcards of GLOB.
func globLiteral(s string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(s)
}

// matchPaths returns, as a JSON list, the ids of the documents whose shown path
// matches one of the globs.
func (s *Snapshot) matchPaths(ctx context.Context, globs []string, mount string) (string, error) {
	var res []*regexp.Regexp
	for _, g := range globs {
		re, err := regexp.Compile(globRegexp(g))
		if err != nil {
			return "", fmt.Errorf("path filter: %w", err)
		}
		res = append(res, re)
	}
	rows, err := s.tx.QueryContext(ctx, `SELECT id, path FROM docs`)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	ids := []int64{}
	for n := 0; rows.Next(); n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		var id int64
		var p sql.RawBytes
		if err := rows.Scan(&id, &p); err != nil {
			return "", err
		}
		for _, re := range res {
			if re.Match(p) || mount != "" && re.MatchString(mount+"/"+string(p)) {
				ids = append(ids, id)
				break
			}
		}
	}
	if err := rows.Err(); err != nil {
		return "", err
	}
	b, err := json.Marshal(ids)
	return string(b), err
}

// globRegexp turns a path filter into a regular expression that always compiles. ** matches
// any segments; * and ? match within one segment. A filter without wildcards names a file, a
// directory, or the last segments of a path ("guide.md"). A filter without capital letters
// ignores case.
func globRegexp(g string) string {
	g = strings.TrimPrefix(strings.ToValidUTF8(parse.Clip(g, maxGlobBytes), "\ufffd"), "./")
	rooted := strings.HasPrefix(g, "/")
	g = strings.Trim(g, "/")
	var b strings.Builder
	b.WriteString("(?s")
	if g == strings.ToLower(g) {
		b.WriteByte('i')
	}
	b.WriteString(")^/?")
	if g == "" { // the root
		return b.String()
	}
	if !strings.ContainsAny(g, "*?") {
		if !rooted {
			b.WriteString("(?:.*/)?")
		}
		b.WriteString(regexp.QuoteMeta(g) + "(?:/.*)?$")
		return b.String()
	}
	if !rooted && !strings.Contains(g, "/") {
		b.WriteString("(?:.*/)?") // *.md matches at any depth, as on GitHub
	}
	stars := 0
	for i := 0; i < len(g); i++ {
		switch {
		case strings.HasPrefix(g[i:], "**/"):
			b.WriteString("(?:.*/)?")
			for strings.HasPrefix(g[i+3:], "**/") { // a repetition matches nothing more
				i += 3
			}
			i += 2
		case strings.HasPrefix(g[i:], "**"):
			b.WriteString(".*")
			for i+1 < len(g) && g[i+1] == '*' {
				i++
			}
		case g[i] == '*':
			b.WriteString("[^/]*")
		case g[i] == '?':
			b.WriteString("[^/]")
		default:
			j := i
			for j < len(g) && g[j] != '*' && g[j] != '?' {
				j++
			}
			b.WriteString(regexp.QuoteMeta(g[i:j]))
			i = j - 1
			continue
		}
		if stars++; stars > maxWildcards {
			return b.String() // the rest is ignored
		}
	}
	b.WriteString("$")
	return b.String()
}

// The bounds of one path filter. For each path, matching takes time in proportion to the
// length of the filter.
const (
	maxGlobBytes = 300
	maxWildcards = 20
)

// MaxGlobs is how many path filters of one query are used, because each is tried on every
// path.
const MaxGlobs = 16
