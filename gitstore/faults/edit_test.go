//go:build unix

package faults

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"

	"satchel/internal/space"
)

// A token is a word that exactly one change brought into the world, so that it
// can be followed wherever merges take it. Every line that a change writes has
// one of its own.
var tokens = regexp.MustCompile(`tok:[a-z0-9-]+`)

func line(token string) []byte { return []byte("tok:" + token + " and some more words\n") }

func tokensOf(b []byte) []string {
	var out []string
	for _, m := range tokens.FindAll(b, -1) {
		out = append(out, string(m))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// opMark begins the message of a commit that a writer or a person made.
const opMark = "op "

type file struct {
	content []byte
	mode    space.Mode
	blob    space.BlobID // empty for people, who need none
}

type view map[string]file

// pool has few names, so that changes meet; among them some that are files for
// one and directories for another, and some that differ in case alone.
var pool = []string{"a.md", "b.md", "c.txt", "d", "d/x.md", "d/y.md", "e/deep/z.md", "Read.md", "READ.md", "p.bin", "run.sh", "link"}

// change is a set of changes that one actor makes from what it saw.
type change struct {
	from    view
	rng     *rand.Rand
	op      string
	n       int
	order   []string // paths
	changes map[string]*file
	adds    map[string][]string // tokens that are new with it, by path
	removes []string            // tokens that files of from lose by it
}

// newEdit makes up one to three changes.
func newEdit(from view, rng *rand.Rand, op string) *change {
	c := &change{from: from, rng: rng, op: op, changes: map[string]*file{}, adds: map[string][]string{}}
	for range 1 + rng.IntN(3) {
		c.one()
	}
	if len(c.order) == 0 {
		c.write(fmt.Sprintf("new-%s.md", op), c.lines(3), space.Regular)
	}
	slices.Sort(c.removes)
	c.removes = slices.Compact(c.removes)
	return c
}

func (c *change) token() []byte {
	c.n++
	return line(fmt.Sprintf("%s-%d", c.op, c.n))
}

func (c *change) lines(n int) []byte {
	var b []byte
	for range n {
		b = append(b, c.token()...)
	}
	return b
}

// pick returns a path of from that was not changed yet.
func (c *change) pick() (string, bool) {
	var free []string
	for _, p := range slices.Sorted(maps.Keys(c.from)) {
		if _, done := c.changes[p]; !done {
			free = append(free, p)
		}
	}
	if len(free) == 0 {
		return "", false
	}
	return free[c.rng.IntN(len(free))], true
}

// name returns a path of the pool that may become a file: what is in its way
// goes, files below it or files above it.
func (c *change) name() (string, bool) {
	p := pool[c.rng.IntN(len(pool))]
	for _, q := range slices.Concat(slices.Collect(maps.Keys(c.from)), c.order) {
		if !strings.HasPrefix(q, p+"/") && !strings.HasPrefix(p, q+"/") {
			continue
		}
		if f, done := c.changes[q]; done && f != nil {
			return "", false
		} else if !done {
			c.remove(q)
		}
	}
	_, done := c.changes[p]
	return p, !done
}

func (c *change) put(p string, f *file) {
	if _, again := c.changes[p]; !again {
		c.order = append(c.order, p)
	}
	c.changes[p] = f
	was, is := tokensOf(c.from[p].content), []string(nil)
	if f != nil {
		is = tokensOf(f.content)
	}
	for _, t := range was {
		if !slices.Contains(is, t) {
			c.removes = append(c.removes, t)
		}
	}
	for _, t := range is {
		if strings.HasPrefix(t, "tok:"+c.op+"-") {
			c.adds[p] = append(c.adds[p], t)
		}
	}
}

func (c *change) write(p string, content []byte, m space.Mode) {
	c.put(p, &file{content: content, mode: m})
}
func (c *change) remove(p string) { c.put(p, nil) }

// one makes up one change.
func (c *change) one() {
	p, any := c.pick()
	kind := c.rng.IntN(100)
	if !any {
		kind = 99
	}
	f := c.from[p]
	switch {
	case f.mode == space.Symlink && kind < 85:
		c.write(p, []byte(strings.TrimSpace(string(c.token()))), space.Symlink)
	case kind < 45: // some lines
		c.write(p, c.amend(f.content), f.mode)
	case kind < 55: // everything
		c.write(p, c.lines(1+c.rng.IntN(6)), f.mode)
	case kind < 65:
		c.remove(p)
	case kind < 77: // a rename, perhaps with a change
		to, ok := c.name()
		if ok && c.rng.IntN(3) == 0 {
			to, ok = path.Join(path.Dir(p), strings.ToUpper(path.Base(p))), true
		}
		_, taken := c.from[to]
		if _, done := c.changes[p]; !ok || taken || done || to == p || c.changes[to] != nil || strings.HasPrefix(to, p+"/") || strings.HasPrefix(p, to+"/") {
			return
		}
		content := f.content
		if c.rng.IntN(2) == 0 {
			content = c.amend(content)
		}
		c.remove(p)
		c.write(to, content, f.mode)
	case kind < 82:
		c.write(p, f.content, f.mode^space.Executable)
	default: // a file, new or over what is there
		if to, ok := c.name(); ok {
			switch {
			case to == "link":
				c.write(to, []byte(strings.TrimSpace(string(c.token()))), space.Symlink)
			case to == "p.bin":
				c.write(to, append([]byte("\x00\x01"), c.token()...), space.Regular)
			default:
				c.write(to, c.lines(4+c.rng.IntN(9)), space.Regular)
			}
		}
	}
}

// amend replaces, inserts and removes some lines.
func (c *change) amend(content []byte) []byte {
	ls := bytes.SplitAfter(content, []byte("\n"))
	if len(ls[len(ls)-1]) == 0 {
		ls = ls[:len(ls)-1]
	}
	for range 1 + c.rng.IntN(2) {
		if len(ls) == 0 {
			ls = append(ls, c.token())
			continue
		}
		at := c.rng.IntN(len(ls))
		switch c.rng.IntN(4) {
		case 0:
			ls = slices.Delete(ls, at, at+1)
		case 1:
			ls = slices.Insert(ls, at, c.token())
		default:
			ls[at] = c.token()
		}
	}
	return bytes.Join(ls, nil)
}
