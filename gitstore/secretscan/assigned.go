package secretscan

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/internal/space"
)

// RuleAssigned is the rule of a finding of Suspects that has no known format.
const RuleAssigned = "assigned-password"

const (
	assignedMin = 8 // characters of a password
	assignedMax = 200
	// assignedTurns is how often a password changes between small letters,
	// capitals, digits and other characters: words with a number behind them are
	// placeholders more often than not.
	assignedTurns = 3
	// assignedLook is how many bytes are looked at between two looks at the time.
	assignedLook = 1 << 16
)

// The signs that may stand between a name, the sign of an assignment and a value.
const (
	assignedMarks  = 3 // quotes and asterisks behind a name
	assignedBlanks = 10
	assignedEnds   = " \t\n\f\r\"'`,;|" // of a value
	assignedTail   = ".:)*"             // behind a value without quotes
	notInPasswords = "<>{}()[]$\\"      // but in calls and templates
	assignedIndent = 40                 // of a block of YAML's
	urlUser        = 200                // bytes before the password of a URL
)

var (
	assignedNames = []string{"password", "passwd", "passphrase", "pwd", "secret", "token", "api_key", "apikey", "api-key"}
	// placeholderWords are in what a text says in the place of a password.
	placeholderWords = []string{
		"example", "sample", "dummy", "your", "xxx", "change", "placeholder", "replace", "redacted", "test", "demo", "pass", "secret",
		"token", "key", "pwd", "user", "admin", "foo", "bar", "abc", "123", "qwerty", "process.env", "env.", "://", "...", "…",
	}
)

// Suspects returns what Scan does and, after that, what a text assigns to a name
// such as DB_PASSWORD or token, or has as the password of a URL, where it looks like
// a real one. It is for warnings alone: a text that shows how something is set up may
// have such lines and no secret, and a password that looks like a word is not found.
// Where a file has no line feed, its lines end with a carriage return.
func (s *Scanner) Suspects(p space.Path, content []byte) []Finding {
	found, _ := s.SuspectsIn(context.Background(), p, content)
	return found
}

// ErrMore is the error of a look that ended since it had found as much as it tells.
var ErrMore = errors.New("there is more than is told")

// SuspectsIn is Suspects that ends with ctx, whose error it returns then, with what
// it has found. Where it has found as much as it tells, the error is ErrMore.
func (s *Scanner) SuspectsIn(ctx context.Context, _ space.Path, content []byte) ([]Finding, error) {
	known, err := s.scan(ctx, content)
	if err != nil {
		return known, err
	}
	found, err := s.assigned(ctx, content, false)
	if w, ok := wideText(content); ok && err == nil {
		var more []Finding
		more, err = s.assigned(ctx, w.narrow(content), true)
		for _, f := range more {
			f.Start, f.End = w.at+2*f.Start, w.at+2*f.End
			f.Column = 2*f.Column - 1
			found = append(found, f)
		}
	}
	byStart := func(a, b Finding) int { return cmp.Compare(a.Start, b.Start) }
	slices.SortStableFunc(found, byStart)
	// A rest that was not searched for known keys hides nothing.
	taken := slices.DeleteFunc(slices.Clone(known), func(k Finding) bool { return k.Rule == RuleUnread })
	end := 0
	for _, f := range found {
		for len(taken) > 0 && taken[0].End <= f.Start {
			taken = taken[1:]
		}
		if len(taken) > 0 && taken[0].Start < f.End || f.Start < end {
			continue
		}
		end = f.End
		if len(known) >= s.max {
			err = ErrMore
			break
		}
		known = append(known, f)
	}
	slices.SortStableFunc(known, byStart)
	return known, err
}

// assigned returns what text assigns, however long its lines are. In a narrowed text
// the byte 0xff is any character.
func (s *Scanner) assigned(ctx context.Context, text []byte, narrowed bool) ([]Finding, error) {
	var out []Finding
	lines := newLines(text)
	var run run
	colons, equals := signs{c: ':', at: -1}, signs{c: '=', at: -1}
	for i, next := 0, assignedLook; ; i++ {
		if i = min(colons.from(text, i), equals.from(text, i)); i >= len(text) {
			break
		}
		if i >= next {
			if next = i + assignedLook; ctx.Err() != nil {
				return out, ctx.Err()
			}
		}
		from, to := 0, 0
		switch {
		case nameBefore(text, i):
			from, to = run.value(text, i+1)
		case i > 0 && isWord(text[i-1]) && bytes.HasPrefix(text[i:], []byte("://")):
			from, to = urlPassword(text, i+3)
		}
		if to-from < assignedMin || to-from > assignedMax*utf8.UTFMax || !narrowed && !utf8.Valid(text[from:to]) || !passwordLike(string(text[from:to])) {
			continue
		}
		f := Finding{Rule: RuleAssigned, Description: "value of a name such as password", Start: from, End: to, Fingerprint: fingerprint(text[from:to])}
		f.Line, f.Column = lines.place(from)
		if len(out) >= s.max {
			return out, ErrMore
		}
		out = append(out, f)
		i = to - 1
	}
	return out, nil
}

// signs are the places of a byte.
type signs struct {
	c  byte
	at int // of the one that was found last
}

// from returns the next place from i on, or len(text).
func (s *signs) from(text []byte, i int) int {
	if s.at >= i {
		return s.at
	}
	if s.at = len(text); i < len(text) {
		if n := bytes.IndexByte(text[i:], s.c); n >= 0 {
			s.at = i + n
		}
	}
	return s.at
}

// nameBefore tells whether one of the names stands before the sign at i.
func nameBefore(text []byte, i int) bool {
	for n := 0; n < assignedBlanks && i > 0 && (text[i-1] == ' ' || text[i-1] == '\t'); n++ {
		i--
	}
	for n := 0; n < assignedMarks && i > 0 && strings.IndexByte("`\"'*", text[i-1]) >= 0; n++ {
		i--
	}
	if i == 0 {
		return false
	}
	switch text[i-1] | 0x20 { // the last letters of the names
	case 'd', 'e', 't', 'n', 'y':
	default:
		return false
	}
	return slices.ContainsFunc(assignedNames, func(name string) bool {
		return i >= len(name) && hasText(text[i-len(name):], []byte(name), true)
	})
}

// value returns the bounds of what is assigned by the sign before i, without the quotes
// and the emphasis around it.
func (r *run) value(text []byte, i int) (from, to int) {
	if text[i-1] == ':' && i < len(text) && text[i] == '=' {
		i++
	}
	i = skip(text, i, " \t", assignedBlanks)
	if j := skip(text, i, "|>", 1); j > i && text[i-1] != '=' { // a block of YAML's
		j = skip(text, j, "+-123456789", 2)
		if j = skip(text, skip(text, j, " \t\r", assignedBlanks), "\n", 1); text[j-1] == '\n' {
			i = skip(text, j, " ", assignedIndent)
		}
	}
	i = skip(text, skip(text, i, "*", 2), " \t", 1)
	from = skip(text, i, "`\"'", 1)
	to = r.endOf(text, from)
	if from == i {
		to = max(from, r.trimmed)
	}
	if to-from >= assignedMin && r.refuses(text, from) {
		return 0, 0
	}
	return from, to
}

// skip returns the place after so many of the signs at i at most.
func skip(text []byte, i int, signs string, most int) int {
	for end := min(len(text), i+most); i < end && strings.IndexByte(signs, text[i]) >= 0; {
		i++
	}
	return i
}

// urlPassword returns the bounds of the password of a URL whose authority (RFC 3986
// section 3.2) begins at i; both are 0 where it has none.
func urlPassword(text []byte, i int) (from, to int) {
	for end := min(len(text), i+urlUser+assignedMax*utf8.UTFMax); i < end && strings.IndexByte(assignedEnds+"/?#", text[i]) < 0; i++ {
		switch {
		case text[i] == ':' && from == 0:
			from = i + 1
		case text[i] == '@' && from == 0:
			return 0, 0
		case text[i] == '@':
			to = i
		}
	}
	if to < from {
		return 0, 0
	}
	return from, to
}

// run is a stretch of a text without the end of a value: it is found once, however
// many values might begin in it. One that begins at bad or before has what a password
// has not; as all names are among that, few others begin in the same run.
type run struct {
	start, end, bad int
	trimmed         int // the end without the signs that close a sentence
}

func (r *run) endOf(text []byte, from int) int {
	if from < r.start || from > r.end {
		r.start, r.end, r.bad = from, from, unasked
		for r.end < len(text) && strings.IndexByte(assignedEnds, text[r.end]) < 0 {
			r.end++
		}
		r.trimmed = r.start + len(bytes.TrimRight(text[r.start:r.end], assignedTail))
	}
	return r.end
}

// What bad is before the first value of a run, and before the second.
const (
	unasked = -2
	unknown = -1
)

// refuses tells, from the second value of a run on, whether one that begins at from has
// what a password has not.
func (r *run) refuses(text []byte, from int) bool {
	switch r.bad {
	case unasked:
		r.bad = unknown
	case unknown:
		r.bad = 0 // where no value begins
		begin := max(r.start, r.end-assignedMax*utf8.UTFMax)
		low := bytes.Clone(bytes.TrimRight(text[begin:r.end], assignedTail))
		for i, c := range low { // and no byte more or less, as ToLower may
			if c >= 'A' && c <= 'Z' {
				low[i] = c + 'a' - 'A'
			}
		}
		at := bytes.LastIndexAny(low, notInPasswords)
		for _, p := range placeholderWords {
			at = max(at, bytes.LastIndex(low, []byte(p)))
		}
		if at >= 0 {
			r.bad = begin + at
		}
	}
	return from <= r.bad
}

// lines counts the lines of a text up to places that follow each other.
type lines struct {
	text         []byte
	ends         byte
	at, n, begin int
}

func newLines(text []byte) lines {
	l := lines{text: text, ends: '\n', n: 1}
	if bytes.IndexByte(text, '\n') < 0 {
		l.ends = '\r'
	}
	return l
}

// place returns the line and the column of a byte, both from 1.
func (l *lines) place(to int) (line, column int) {
	passed := l.text[l.at:to]
	l.n += bytes.Count(passed, []byte{l.ends})
	if i := bytes.LastIndexByte(passed, l.ends); i >= 0 {
		l.begin = l.at + i + 1
	}
	l.at = to
	return l.n, to - l.begin + 1
}

// passwordLike tells whether a value looks like a password that somebody uses: of
// several kinds of characters, no call or template, and no word of an example's.
func passwordLike(v string) bool {
	if n := utf8.RuneCountInString(v); n < assignedMin || n > assignedMax || strings.ContainsAny(v, notInPasswords) || strings.HasPrefix(v, "/") || strings.HasPrefix(v, ".") {
		return false
	}
	low := strings.ToLower(v)
	if slices.ContainsFunc(placeholderWords, func(p string) bool { return strings.Contains(low, p) }) {
		return false
	}
	turns, last := 0, 0
	var seen [5]bool
	different := map[rune]bool{}
	for _, r := range v {
		kind := 4
		switch {
		case unicode.IsLower(r):
			kind = 1
		case unicode.IsUpper(r):
			kind = 2
		case unicode.IsDigit(r):
			kind = 3
		}
		if last != 0 && kind != last {
			turns++
		}
		seen[kind], last, different[r] = true, kind, true
	}
	return seen[3] && (seen[1] || seen[2]) && turns >= assignedTurns && len(different) >= assignedMin-2
}
