package secretscan

import (
	"bytes"
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/internal/space"
)

// RuleAssigned is the rule of a finding of Suspects that has no known format.
const RuleAssigned = "assigned-password"

const (
	assignedLine = 2000 // bytes of a line that are looked at
	// assignedLines is how many lines are looked at between two looks at the time.
	assignedLines = 1 << 10
	assignedMin   = 8 // characters of a password
	assignedMax   = 200
	// assignedTurns is how often a password changes between small letters,
	// capitals, digits and other characters: words with a number behind them are
	// placeholders more often than not.
	assignedTurns = 3
)

var (
	assignedNames = []string{"password", "passwd", "passphrase", "secret", "token", "api_key", "apikey", "api-key"}
	assignedExpr  = regexp.MustCompile("(?i)(?:password|passwd|passphrase|secret|token|api[_-]?key)[`\"'*]{0,3}[ \t]{0,10}(?::=|[:=])[ \t]{0,10}[*]{0,2}[ \t]?([`\"']?)([^\\s\"'`,;|]{8,201})")
	// placeholderWords are in what a text says in the place of a password.
	placeholderWords = []string{
		"example", "sample", "dummy", "your", "xxx", "change", "placeholder", "replace", "redacted", "test", "demo", "pass", "secret",
		"token", "key", "user", "admin", "foo", "bar", "abc", "123", "qwerty", "process.env", "env.", "://", "...", "…",
	}
)

// Suspects returns what Scan does and, after that, what a text assigns to a name
// such as DB_PASSWORD or token where it looks like a real one. It is for warnings
// alone: a text that shows how something is set up may have such lines and no
// secret, and a password that looks like a word is not found.
func (s *Scanner) Suspects(p space.Path, content []byte) []Finding {
	found, _ := s.SuspectsIn(context.Background(), p, content)
	return found
}

// SuspectsIn is Suspects that ends with ctx, whose error it returns then, with what
// it has found.
func (s *Scanner) SuspectsIn(ctx context.Context, _ space.Path, content []byte) ([]Finding, error) {
	known, err := s.scan(ctx, content)
	if err != nil {
		return known, err
	}
	found := known
	line, at := 0, 0
	for l := range bytes.Lines(content) {
		if line++; line%assignedLines == 0 && ctx.Err() != nil {
			err = ctx.Err()
			break
		}
		start := at
		at += len(l)
		l = l[:min(len(l), assignedLine)]
		if !assigns(l) {
			continue
		}
		for _, m := range assignedExpr.FindAllSubmatchIndex(l, -1) {
			from, to := m[4], m[5]
			if m[2] == m[3] {
				to = from + len(bytes.TrimRight(l[from:to], ".:)*"))
			}
			f := Finding{
				Rule: RuleAssigned, Description: "value of a name such as password", Line: line, Column: from + 1, Start: start + from, End: start + to,
			}
			if !utf8.Valid(l[from:to]) || !passwordLike(string(l[from:to])) || slices.ContainsFunc(known, func(k Finding) bool { return k.Start < f.End && f.Start < k.End }) {
				continue
			}
			f.Fingerprint = fingerprint(l[from:to])
			if found = append(found, f); len(found) >= s.max {
				break
			}
		}
		if len(found) >= s.max {
			break
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Start, b.Start) })
	return found, err
}

// assigns tells whether assignedExpr may match in a line: whether a sign of an
// assignment has one of the names before it and enough of a value behind it. It
// never says no where the expression matches, and takes a tenth of its time.
func assigns(line []byte) bool {
	for i, c := range line {
		if (c == '=' || c == ':') && valueFollows(line[i+1:]) && nameBefore(line[:i]) {
			return true
		}
	}
	return false
}

// The signs that assignedExpr allows between a name and a value.
const (
	assignedBlanks = 10
	assignedMarks  = 3 // quotes and asterisks behind a name
	// assignedGap is how many signs stand at most between the first one and a value.
	assignedGap  = 1 + assignedBlanks + 2 + 1 + 1
	assignedName = 3 * len("passphrase") // bytes of a name at most
	assignedEnds = " \t\n\f\r\"'`,;|"
)

func nameBefore(line []byte) bool {
	for _, skip := range []struct {
		signs string
		most  int
	}{{" \t", assignedBlanks}, {"`\"'*", assignedMarks}} {
		for n := 0; n < skip.most && len(line) > 0 && strings.IndexByte(skip.signs, line[len(line)-1]) >= 0; n++ {
			line = line[:len(line)-1]
		}
	}
	// The expression takes the old long s for an s, as it does the sign of kelvin for a
	// k, which ToLower does too; they have two and three bytes.
	low := bytes.ToLower(bytes.ReplaceAll(line[max(0, len(line)-assignedName):], []byte("ſ"), []byte("s")))
	return slices.ContainsFunc(assignedNames, func(n string) bool { return bytes.HasSuffix(low, []byte(n)) })
}

// valueFollows tells whether so many bytes without an end of a value stand together
// where one may begin.
func valueFollows(line []byte) bool {
	run := 0
	for _, c := range line[:min(len(line), assignedGap+assignedMin)] {
		if strings.IndexByte(assignedEnds, c) >= 0 {
			run = 0
		} else if run++; run == assignedMin {
			return true
		}
	}
	return false
}

// passwordLike tells whether a value looks like a password that somebody uses: of
// several kinds of characters, no call or template, and no word of an example's.
func passwordLike(v string) bool {
	if n := utf8.RuneCountInString(v); n < assignedMin || n > assignedMax || strings.ContainsAny(v, "<>{}()[]$\\") || strings.HasPrefix(v, "/") || strings.HasPrefix(v, ".") {
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
