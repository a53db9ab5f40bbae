package secretscan

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"
)

const (
	// maxMatch bounds how many bytes an expression without a limit of its own reads.
	maxMatch = 1024
	// workPerByte bounds the bytes that expressions read per byte of content. Reading a byte
	// takes 50 ns. The limit is for content that consists only of beginnings of keys. Among
	// 68,000 real files, only those with a scanner's rules needed more than 0.5 bytes.
	workPerByte = 4
	minWork     = 1 << 20
)

// matcher finds the matches of rules. It looks at every pair of bytes in the content. Where
// it finds the rarest pair of a rule's text, it compares the text and then matches the
// rule's expression.
type matcher struct {
	rules []compiled
	pairs [1 << 16 / 64]uint64 // a bit for each pair that is the rarest of a text
	texts map[uint16][]text    // the texts by their rarest pair
}

// text is a literal of a rule.
type text struct {
	rule   int
	lit    []byte
	fold   bool
	offset int // the offset of the rarest pair in lit
}

// compiled is a rule with its expression, which is compiled when it is first needed.
type compiled struct {
	rule
	once   sync.Once
	re     *regexp.Regexp
	window int // maximal length of a match in bytes
}

func newMatcher(rules []rule) *matcher {
	m := &matcher{rules: make([]compiled, len(rules)), texts: map[uint16][]text{}}
	for i, r := range rules {
		m.rules[i].rule = r
		for _, lit := range r.lits {
			t := text{rule: i, lit: []byte(lit), fold: r.fold, offset: rarestPair(lit)}
			a, b := lit[t.offset], lit[t.offset+1]
			for _, pair := range casings(a, b, r.fold) {
				m.pairs[pair>>6] |= 1 << (pair & 63)
				m.texts[pair] = append(m.texts[pair], t)
			}
		}
	}
	return m
}

func pairOf(a, b byte) uint16 { return uint16(a) | uint16(b)<<8 }

func casings(a, b byte, fold bool) []uint16 {
	out := []uint16{pairOf(a, b)}
	if !fold {
		return out
	}
	for _, p := range [][2]byte{{upper(a), b}, {a, upper(b)}, {upper(a), upper(b)}} {
		if v := pairOf(p[0], p[1]); v != out[0] && v != out[len(out)-1] {
			out = append(out, v)
		}
	}
	return out
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

// rarestPair returns the offset of the pair of bytes in lit that is the rarest in prose.
func rarestPair(lit string) int {
	weight := func(c byte) int {
		switch {
		case bytes.IndexByte([]byte("etaoinsr"), c) >= 0:
			return 9
		case c >= 'a' && c <= 'z':
			return 6
		case c == ' ' || c == '-':
			return 7
		case c >= '0' && c <= '9' || c == '.' || c == '/':
			return 3
		}
		return 2 // capitals and signs
	}
	best, at := math.MaxInt, 0
	for i := 0; i+1 < len(lit); i++ {
		if w := weight(lit[i]) * weight(lit[i+1]); w < best {
			best, at = w, i
		}
	}
	return at
}

// match is a secret that a rule found.
type match struct {
	rule       *rule
	start, end int
	// decoded is the secret inside base64 if start and end are the bounds of the base64. If
	// the base64 holds several secrets, decoded is the base64 itself.
	decoded []byte
}

// search is a search of one content.
type search struct {
	m    *matcher
	work int         // bytes that expressions may still read
	stop func() bool // called from time to time; true ends the search early
	last []int       // where each rule's last match ends
	buf  []byte      // the last decoded base64
}

func (m *matcher) search(size int, stop func() bool) *search {
	return &search{m: m, work: minWork + workPerByte*size, stop: stop, last: make([]int, len(m.rules))}
}

// text calls found for each secret in a content, until the work is used up or stop returns
// true. It returns where it stopped, or -1 at the end of the content.
func (s *search) text(content []byte, found func(match)) int {
	m, last := s.m, s.last
	clear(last)
	for i := 0; i+1 < len(content); i++ {
		pair := uint16(content[i]) | uint16(content[i+1])<<8
		if m.pairs[pair>>6]>>(pair&63)&1 == 0 {
			continue
		}
		for _, t := range m.texts[pair] {
			r := &m.rules[t.rule]
			start := i - t.offset
			if start < 0 || !hasText(content[start:], t.lit, t.fold) || !hasRun(content[start+len(t.lit):], r.run) {
				continue
			}
			if start -= r.at; start < last[t.rule] || r.bound && insideWord(content, start) {
				continue
			}
			end, cost := r.match(content, start, func(a, b int) { found(match{rule: &r.rule, start: a, end: b}) })
			if end > 0 {
				last[t.rule] = end
			}
			if s.work -= cost + len(t.lit); s.work < 0 || s.stop() {
				return i
			}
		}
	}
	return -1
}

// minEncoded is the length of the shortest base64 that is decoded. The shortest key, an AWS
// access key ID of 20 bytes, has 27 digits.
const minEncoded = 27

// encoded calls found for each base64 that holds secrets, because remotes refuse it too. It
// returns where it stopped, like text.
func (s *search) encoded(content []byte, found func(match)) int {
	var inside []match
	for i := 0; i+minEncoded <= len(content); {
		// Step back from the far end of the shortest base64, so that prose is skipped in large
		// steps.
		j := i + minEncoded - 1
		for j >= i && isBase64(content[j]) {
			j--
		}
		if j >= i {
			i = j + 1
			continue
		}
		end := i + minEncoded
		for end < len(content) && isBase64(content[end]) {
			end++
		}
		run := content[i:end]
		s.buf = slices.Grow(s.buf[:0], base64.RawStdEncoding.DecodedLen(len(run)))
		n, _ := base64.RawStdEncoding.Decode(s.buf[:cap(s.buf)], run) // decode as much as possible
		for end < len(content) && content[end] == '=' {
			end++
		}
		start := i
		i = end
		inside = inside[:0]
		stopped := s.text(s.buf[:n], func(m match) { inside = append(inside, m) })
		if inside = apart(inside); len(inside) > 0 {
			// If there are several secrets, the base64 itself stands for all of them.
			m := match{rule: inside[0].rule, start: start, end: end, decoded: run}
			if len(inside) == 1 {
				m.decoded = bytes.Clone(s.buf[inside[0].start:inside[0].end])
			}
			found(m)
		}
		if stopped >= 0 {
			return start
		}
	}
	return -1
}

// apart sorts matches and removes those that begin inside an earlier one.
func apart(all []match) []match {
	slices.SortStableFunc(all, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	end := 0
	return slices.DeleteFunc(all, func(m match) bool {
		if m.start < end {
			return true
		}
		end = m.end
		return false
	})
}

func hasText(content, lit []byte, fold bool) bool {
	if len(content) < len(lit) {
		return false
	}
	if !fold {
		return bytes.Equal(content[:len(lit)], lit)
	}
	for i, c := range lit {
		if content[i] != c && (content[i] < 'A' || content[i] > 'Z' || content[i]+('a'-'A') != c) {
			return false
		}
	}
	return true
}

// hasRun reports whether content begins with n letters, digits or underscores.
func hasRun(content []byte, n int) bool {
	if len(content) < n {
		return false
	}
	for _, c := range content[:n] {
		if !isWord(c) {
			return false
		}
	}
	return true
}

// match tries the rule at start. If it matches, match calls found with the secret's bounds.
// It returns where the match ends, or 0 for none, and how many bytes it may have read.
func (r *compiled) match(content []byte, start int, found func(start, end int)) (end, cost int) {
	r.once.Do(r.compile)
	view := content[start:min(start+r.window, len(content))]
	loc := r.re.FindSubmatchIndex(view)
	if loc == nil {
		return 0, len(view)
	}
	from, to := loc[0], loc[1]
	for g := 2; g+1 < len(loc); g += 2 {
		if loc[g] >= 0 {
			from, to = loc[g], loc[g+1]
			break
		}
	}
	from, to = start+from, start+to
	cost = len(view)
	if r.refine != nil {
		n := r.refine(content[from:])
		cost += max(n, 1024)
		if n == 0 {
			return 0, cost
		}
		to = from + n
	}
	if to == start+r.window { // the match fills the window: what follows belongs to it
		for to < len(content) && (isBase64(content[to]) || bytes.IndexByte([]byte("-_="), content[to]) >= 0) {
			to++
		}
		cost = max(cost, to-start)
	}
	if r.ends && to < len(content) && isWord(content[to]) {
		return 0, cost
	}
	secret := content[from:to]
	if !r.long && (entropy(secret) <= r.entropy || isExample(secret) || insideBase64(content, from, secret)) {
		return 0, cost
	}
	found(from, to)
	return to, cost
}

// compile compiles the expression and computes the maximal length of a match.
func (r *compiled) compile() {
	r.re = regexp.MustCompile(`\A(?:` + r.expr + `)`)
	parsed, err := syntax.Parse(r.expr, syntax.Perl)
	if err != nil {
		panic(err) // MustCompile has already parsed it
	}
	// One more byte, for expressions that look at the byte after the match.
	r.window = min(longest(parsed), maxMatch) + 1
}

// longest returns the maximal length in bytes of a match. More than maxMatch means no
// limit.
func longest(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return 4 * len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		if re.Op == syntax.OpCharClass && (len(re.Rune) == 0 || re.Rune[len(re.Rune)-1] < 0x80) {
			return 1
		}
		return 4
	case syntax.OpStar, syntax.OpPlus:
		return maxMatch + 1
	case syntax.OpRepeat:
		if re.Max < 0 {
			return maxMatch + 1
		}
		return min(re.Max*longest(re.Sub[0]), maxMatch+1)
	case syntax.OpConcat:
		n := 0
		for _, sub := range re.Sub {
			n += longest(sub)
		}
		return min(n, maxMatch+1)
	case syntax.OpAlternate, syntax.OpCapture, syntax.OpQuest:
		n := 0
		for _, sub := range re.Sub {
			n = max(n, longest(sub))
		}
		return n
	}
	return 0
}

// insideWord reports whether a letter, digit or _ precedes start. An escape that precedes
// start, such as \n or \u0022 in JSON or %3D in a URL, does not count.
func insideWord(content []byte, start int) bool {
	if start < 1 || !isWord(content[start-1]) {
		return false
	}
	before := content[max(0, start-6):start]
	n := len(before)
	return !(n >= 2 && before[n-2] == '\\' && bytes.IndexByte([]byte("nrtbf"), before[n-1]) >= 0 ||
		n >= 3 && before[n-3] == '%' && isHex(before[n-2]) && isHex(before[n-1]) ||
		n >= 6 && before[0] == '\\' && before[1] == 'u' && isHex(before[4]) && isHex(before[5]))
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/'
}

// entropy returns the Shannon entropy of a secret in bits per byte.
func entropy(secret []byte) float64 {
	var counts [256]int
	for _, c := range secret {
		counts[c]++
	}
	return entropyOf(counts[:])
}

func entropyOf(counts []int) float64 {
	n := 0
	for _, k := range counts {
		n += k
	}
	var bits float64
	for _, k := range counts {
		if k > 0 {
			p := float64(k) / float64(n)
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// insideBase64 reports whether a secret is part of longer base64, such as that of a picture,
// in which the form of a key is a coincidence. A line continues the line above it only if
// both have the same length, as in wrapped base64.
func insideBase64(content []byte, start int, secret []byte) bool {
	const enough = 56 // digits before the secret
	for _, c := range secret {
		if !isBase64(c) && c != '=' {
			return false
		}
	}
	end := start + len(secret)
	if start > 0 && content[start-1] == '\n' && (end == len(content) || content[end] == '\n' || content[end] == '\r') {
		above := bytes.TrimSuffix(content[:start-1], []byte{'\r'})
		if len(above)-bytes.LastIndexByte(above, '\n')-1 != len(secret) {
			return false
		}
	}
	run, breaks := 0, 0
	for i := start - 1; i >= 0 && run < enough; i-- {
		switch c := content[i]; {
		case isBase64(c):
			run++
		case (c == '\n' || c == '\r') && breaks < 4:
			breaks++
		default:
			return false
		}
	}
	return run >= enough
}
