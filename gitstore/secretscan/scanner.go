package secretscan

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"satchel/internal/database"
	"satchel/internal/space"
)

// Options configures a Scanner. Zero values mean the defaults.
type Options struct {
	// DB keeps the allowances (see [Migrations]). If it is nil, nothing is allowed.
	DB *database.DB
	// Without lists the IDs of rules to leave out.
	Without []string
	// MaxFindings bounds the findings that Scan returns; the default is DefaultMaxFindings.
	MaxFindings int
}

// DefaultMaxFindings is the default of Options.MaxFindings.
const DefaultMaxFindings = 1000

// Scanner finds secrets. It is safe for concurrent use.
type Scanner struct {
	db    *database.DB
	rules []rule
	max   int

	once      sync.Once
	matcher   *matcher
	published map[string]bool

	mu      sync.Mutex
	refused map[refusedKey]place // recent refusals
}

// New returns a scanner. The error names a rule in Options.Without that does
// not exist.
func New(o Options) (*Scanner, error) {
	s := &Scanner{db: o.DB, max: o.MaxFindings, refused: map[refusedKey]place{}}
	if s.max <= 0 {
		s.max = DefaultMaxFindings
	}
	all := append(own(), gitleaksRules()...)
	for _, id := range o.Without {
		if !slices.ContainsFunc(all, func(r rule) bool { return r.id == id }) {
			return nil, fmt.Errorf("there is no rule %q for secrets", id)
		}
	}
	s.rules = slices.DeleteFunc(all, func(r rule) bool { return slices.Contains(o.Without, r.id) })
	return s, nil
}

// Scan returns the secrets in a file's content, in order and without overlap,
// at most Options.MaxFindings of them. Binary files are searched as they are:
// a key in a database or a program is as readable as in a text. Text in UTF-16
// is searched as text. Base64 is decoded once: the finding covers all of the
// base64, and has the fingerprint of the secret inside. A symbolic link's content
// is its target.
//
// If the content has more findings, or so many beginnings of keys that searching all of it
// would take too long, one more finding, of the rule RuleUnread, covers the rest of the
// content.
func (s *Scanner) Scan(p space.Path, content []byte) []Finding {
	found, err := s.scan(context.Background(), content)
	if err != nil {
		return nil // the context never ends, so there is no error
	}
	return found
}

// RuleUnread is the rule of a finding that covers content that was not searched.
const RuleUnread = "unread"

// scan is like Scan, with a context.
func (s *Scanner) scan(ctx context.Context, content []byte) ([]Finding, error) {
	s.once.Do(s.ready)
	found, err := s.search(ctx, content)
	w, ok := wideText(content)
	if err != nil || !ok {
		return found, err
	}
	// The search above has read the content as bytes, so a byte order mark cannot hide anything.
	more, err := s.search(ctx, w.narrow(content))
	if err != nil {
		return nil, err
	}
	for _, f := range more {
		f.Start, f.End = w.at+2*f.Start, w.at+2*f.End
		f.Column = 2*f.Column - 1
		found = append(found, f)
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Start, b.Start) })
	end := 0
	return slices.DeleteFunc(found, func(f Finding) bool {
		if f.Start < end {
			return true
		}
		end = f.End
		return false
	}), nil
}

// ready prepares the first search.
func (s *Scanner) ready() {
	s.matcher = newMatcher(s.rules)
	s.published = map[string]bool{}
	for _, f := range append(published(), gitleaksExamples()...) {
		s.published[f] = true
	}
}

func (s *Scanner) search(ctx context.Context, content []byte) ([]Finding, error) {
	var all []match
	tries := 0
	stop := func() bool {
		tries++
		return tries%256 == 0 && ctx.Err() != nil || len(all) >= 4*s.max
	}
	add := func(m match) { all = append(all, m) }
	work := s.matcher.search(len(content), stop)
	stopped := work.text(content, add)
	if stopped < 0 {
		stopped = work.encoded(content, add)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cut := stopped >= 0
	var out []Finding
	line, lineStart, at := 1, 0, 0
	place := func(to int) (int, int) {
		line += bytes.Count(content[at:to], []byte{'\n'})
		if i := bytes.LastIndexByte(content[at:to], '\n'); i >= 0 {
			lineStart = at + i + 1
		}
		at = to
		return line, to - lineStart + 1
	}
	end := 0
	for _, m := range apart(all) {
		if len(out) == s.max {
			stopped, cut = m.start, true
			break
		}
		f := Finding{Rule: m.rule.id, Description: m.rule.about, Start: m.start, End: m.end, Fingerprint: fingerprint(content[m.start:m.end])}
		if m.decoded != nil {
			f.Description += " in base64"
			f.Fingerprint = fingerprint(m.decoded)
		}
		if s.published[f.Fingerprint] {
			continue
		}
		end = m.end
		f.Line, f.Column = place(m.start)
		out = append(out, f)
	}
	if stopped = max(stopped, end); cut && stopped < len(content) {
		f := Finding{Rule: RuleUnread, Description: "content that has too many keys, or beginnings of keys, to search", Start: stopped, End: len(content), Fingerprint: fingerprint(content[stopped:])}
		f.Line, f.Column = place(stopped)
		out = append(out, f)
	}
	return out, nil
}
