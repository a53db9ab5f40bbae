package secretscan

import (
	"bytes"
	"context"
	"slices"

	"satchel/internal/space"
)

// Purger removes secrets from contents: those that the rules find, and those added with
// Learn. Use one Purger for each purge, in one goroutine; it holds secrets in memory.
type Purger struct {
	s       *Scanner
	allowed map[string]bool
	learnt  [][]byte
	counts  map[space.Path]int
}

// Purger returns a Purger for a space. It leaves secrets that the space allows in place,
// unless they are added with Learn.
func (s *Scanner) Purger(ctx context.Context, id space.SpaceID) (*Purger, error) {
	u := &Purger{s: s, allowed: map[string]bool{}, counts: map[space.Path]int{}}
	if s.db == nil {
		return u, nil
	}
	list, err := s.List(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		u.allowed[a.Fingerprint] = true
	}
	return u, nil
}

// minLearnt is the minimal length, in bytes, of a text that is removed wherever it occurs.
// Shorter texts may be ordinary words.
const minLearnt = 8

// Learn adds the secrets on a line that a person named. Lines are counted from 1. The secrets
// are then removed wherever they occur, even if the space allows them. If no rule finds a
// secret on the line, Learn takes the texts that look random, or the whole line if there
// are none. It returns how many secrets the line has, including those that u already knew:
// 0 if there is no such line, or only a short word on it.
func (u *Purger) Learn(content []byte, line int) int { return u.learn(content, line, true) }

// LearnNamed is like Learn, for a line that a remote named. The remote may be wrong or
// hostile, so LearnNamed never takes a line on which nothing looks like a secret.
func (u *Purger) LearnNamed(content []byte, line int) int { return u.learn(content, line, false) }

func (u *Purger) learn(content []byte, line int, whole bool) int {
	start, end, ok := lineBounds(content, line)
	if !ok {
		return 0
	}
	n := 0
	for _, f := range u.s.Scan("", content) {
		if f.Start < end && f.End > start && f.Rule != RuleUnread {
			n += u.note(content[f.Start:f.End])
		}
	}
	if n > 0 {
		return n
	}
	text := bytes.TrimSpace(content[start:end])
	for _, word := range bytes.FieldsFunc(text, func(r rune) bool { return !isToken(r) }) {
		if bytes.HasPrefix(word, []byte("//")) {
			continue // the host and path of a URL
		}
		// In an assignment without spaces, the secret follows the equals sign.
		if i := bytes.IndexByte(word, '='); i > 0 && i+1 < len(word) && word[i+1] != '=' {
			word = word[i+1:]
		}
		if len(word) >= 12 && entropy(word) > 3 && bytes.ContainsAny(word, "0123456789") {
			n += u.note(word)
		}
	}
	if n == 0 && whole {
		n = u.note(text)
	}
	return n
}

// isToken reports whether a key may contain r.
func isToken(r rune) bool {
	return r < 0x80 && (isBase64(byte(r)) || r == '_' || r == '-' || r == '.' || r == '~' || r == '=' || r == '%')
}

// note adds a secret, and returns 1 if it is long enough, else 0.
func (u *Purger) note(secret []byte) int {
	if len(secret) < minLearnt || slices.ContainsFunc(u.learnt, func(l []byte) bool { return bytes.Equal(l, secret) }) {
		return min(len(secret)/minLearnt, 1) // 0 if too short, 1 if already known
	}
	u.learnt = append(u.learnt, bytes.Clone(secret))
	// Replace the longest first: it may contain a shorter one, and no part of it may be left.
	slices.SortFunc(u.learnt, func(a, b []byte) int { return len(b) - len(a) })
	return 1
}

func lineBounds(content []byte, line int) (start, end int, ok bool) {
	for ; line > 1; line-- {
		i := bytes.IndexByte(content[start:], '\n')
		if i < 0 {
			return 0, 0, false
		}
		start += i + 1
	}
	if line < 1 || start >= len(content) {
		return 0, 0, false
	}
	if i := bytes.IndexByte(content[start:], '\n'); i >= 0 {
		return start, start + i, true
	}
	return start, len(content), true
}

// Rewrite returns content with [Redacted] in place of the secrets that the rules find and
// of those that u has learnt, or content itself if it has none. keep is always true:
// the result has the form that gitstore.(*Store).Purge requires.
func (u *Purger) Rewrite(p space.Path, content []byte) (out []byte, keep bool) {
	n := 0
	out = content
	for more := true; more; { // one Scan returns at most u.s.max findings
		found := u.s.Scan(p, out)
		more = len(found) >= u.s.max
		found = slices.DeleteFunc(found, func(f Finding) bool { return u.allowed[f.Fingerprint] || f.Rule == RuleUnread })
		out = Redact(out, found)
		n += len(found)
		more = more && len(found) > 0
	}
	if n > 0 {
		u.counts[p] += n
	}
	return u.RewriteLearnt(p, out)
}

// RewriteLearnt is like Rewrite, but replaces only the secrets that u has learnt.
func (u *Purger) RewriteLearnt(p space.Path, content []byte) (out []byte, keep bool) {
	n := 0
	out = content
	for _, secret := range u.learnt {
		if k := bytes.Count(out, secret); k > 0 {
			n += k
			out = bytes.ReplaceAll(out, secret, []byte(Redacted))
		}
	}
	if n > 0 {
		u.counts[p] += n
	}
	return out, true
}

// Removed returns how many secrets were removed, by path.
func (u *Purger) Removed() map[space.Path]int { return u.counts }
