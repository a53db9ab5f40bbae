package gitstore

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"satchel/gitstore/packfile"
	"satchel/internal/space"
)

// Trailers of every commit, by which a person can see and revert what a client
// did.
const (
	trailerTool   = "Satchel-Tool"
	trailerClient = "Satchel-Client"
)

// Limits of what goes into a commit object, and of what is read from one, in
// bytes.
const (
	maxMessage = 64 << 10
	maxTrailer = 200
	maxName    = 200

	maxRead   = maxMessage + 4<<10 // of a message that anybody wrote
	maxPerson = 1000               // of each part of an author that anybody wrote
)

// rawCommit is what this package reads from a commit object.
type rawCommit struct {
	tree    packfile.Hash
	parents []packfile.Hash
	author  space.Person
	// authored is the author's date; the committer's where that cannot be read.
	authored time.Time
	time     time.Time // the committer's
	message  string
}

// encodeCommit makes a commit object.
func (o *Options) encodeCommit(tree packfile.Hash, parents []packfile.Hash, m space.Meta, summary string) []byte {
	when := m.Time
	if when.IsZero() {
		when = time.Now()
	}
	stamp := fmt.Sprintf("%d %s", when.Unix(), when.Format("-0700"))
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s %s\n", ident(m.Author, "Satchel user"), stamp)
	fmt.Fprintf(&b, "committer %s %s\n\n", ident(space.Person{Name: o.CommitterName, Email: o.CommitterEmail}, "Satchel"), stamp)
	b.WriteString(cleanMessage(m.Message, summary))
	b.WriteString("\n")
	sep := "\n"
	for _, t := range [][2]string{{trailerTool, m.Tool}, {trailerClient, m.Client}} {
		if v := oneLine(t[1], maxTrailer); v != "" {
			fmt.Fprintf(&b, "%s%s: %s\n", sep, t[0], v)
			sep = ""
		}
	}
	return []byte(b.String())
}

// ident renders a person as git does, without what would end the name, the
// address or the line.
func ident(p space.Person, fallback string) string {
	clean := func(s string) string {
		s = strings.Map(func(r rune) rune {
			if r == '<' || r == '>' {
				return -1
			}
			return r
		}, oneLine(s, maxName))
		return strings.Trim(s, " .,:;\"'\\")
	}
	name := clean(p.Name)
	if name == "" {
		name = fallback
	}
	return fmt.Sprintf("%s <%s>", name, strings.ReplaceAll(clean(p.Email), " ", ""))
}

// oneLine makes a single line of valid UTF-8 without control characters.
func oneLine(s string, max int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return cut(strings.Join(strings.Fields(s), " "), max)
}

// cut shortens s to at most max bytes, at a rune's edge.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// cleanMessage makes the caller's comment fit to be a commit message. A line
// that would pass for one of our trailers is indented.
func cleanMessage(msg, summary string) string {
	msg = strings.ToValidUTF8(strings.ReplaceAll(msg, "\r\n", "\n"), "\uFFFD")
	msg = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, msg)
	lines := strings.Split(cut(msg, maxMessage), "\n")
	for i, l := range lines {
		l = strings.TrimRightFunc(l, unicode.IsSpace)
		if isTrailer(l) {
			l = " " + l
		}
		lines[i] = l
	}
	if msg = strings.Trim(strings.Join(lines, "\n"), "\n"); strings.TrimSpace(msg) == "" {
		return summary
	}
	return msg
}

// claimedTools lists the tools that a message names in trailers of ours, wherever they
// stand: git and its hosts put lines behind them, and indent or quote those of commits
// that they squash. A message that is too long to be read whole may name any.
func claimedTools(msg string) (tools []string) {
	if len(msg) > maxRead {
		return []string{"a tool in a message that is too long"}
	}
	for line := range strings.Lines(msg) {
		line = strings.TrimLeft(line, " \t*->#")
		if len(line) <= len(trailerTool) || !isTrailer(line) {
			continue
		}
		if name, value, _ := strings.Cut(line, ":"); strings.EqualFold(strings.TrimSpace(name), trailerTool) {
			tools = append(tools, strings.TrimSpace(value))
		}
	}
	return tools
}

func isTrailer(line string) bool {
	for _, t := range []string{trailerTool, trailerClient} {
		if len(line) > len(t) && strings.EqualFold(line[:len(t)], t) && strings.HasPrefix(strings.TrimSpace(line[len(t):]), ":") {
			return true
		}
	}
	return false
}

// summarise makes the message of a commit whose maker gave none.
func summarise(files []space.FileChange) string {
	if len(files) == 0 {
		return "Change nothing"
	}
	verb := map[space.FileStatus]string{space.Added: "Add", space.Modified: "Change", space.Deleted: "Delete"}[files[0].Status]
	for _, f := range files {
		if f.Status != files[0].Status {
			verb = "Change"
		}
	}
	first := string(files[0].Path)
	if len(first) > 60 {
		first = "…/" + path.Base(first)
	}
	first = cut(first, 120)
	switch n := len(files); n {
	case 1:
		return verb + " " + first
	case 2:
		return verb + " " + first + " and 1 other file"
	default:
		return fmt.Sprintf("%s %s and %d other files", verb, first, n-1)
	}
}

// parseCommit decodes a commit object.
func parseCommit(data []byte) (rawCommit, error) {
	var c rawCommit
	rawHead, msg, _ := bytes.Cut(data, []byte("\n\n"))
	head := string(rawHead)
	c.message = readMessage(msg)
	for line := range strings.SplitSeq(head, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		var err error
		switch word {
		case "tree":
			c.tree, err = packfile.HashFrom(rest)
		case "parent":
			var p packfile.Hash
			p, err = packfile.HashFrom(rest)
			c.parents = append(c.parents, p)
		case "author":
			c.author, c.authored = parseIdent(rest)
		case "committer":
			_, c.time = parseIdent(rest)
		}
		if err != nil {
			return c, fmt.Errorf("malformed commit: %w", err)
		}
	}
	if c.authored.IsZero() {
		c.authored = c.time
	}
	if !strings.HasPrefix(head, "tree ") {
		return c, fmt.Errorf("malformed commit: it names no tree")
	}
	return c, nil
}

// readMessage returns a commit's message, of which only so much is read: one
// from elsewhere may be as long as git allows.
func readMessage(msg []byte) string {
	if len(msg) <= maxRead {
		return string(msg)
	}
	return cut(string(msg[:maxRead+utf8.UTFMax]), maxRead) + fmt.Sprintf("\n\n[The message is longer than %s; the rest is left out here.]\n", sizeText(maxRead))
}

// personIn returns the bounds of the name and the address in a line of a commit's
// header; both are 0 if the line has no person.
func personIn(line []byte) (from, to int) {
	for _, word := range []string{"author ", "committer "} {
		if bytes.HasPrefix(line, []byte(word)) {
			return len(word), bytes.LastIndexByte(line, '>') + 1
		}
	}
	return 0, 0
}

func parseIdent(s string) (p space.Person, t time.Time) {
	lt, gt := strings.IndexByte(s, '<'), strings.LastIndexByte(s, '>')
	if lt < 0 || gt < lt {
		return p, t
	}
	p.Name = strings.ToValidUTF8(cut(strings.TrimSpace(s[:lt]), maxPerson), "\uFFFD")
	p.Email = strings.ToValidUTF8(cut(s[lt+1:gt], maxPerson), "\uFFFD")
	sec, zone, _ := strings.Cut(strings.TrimSpace(s[gt+1:]), " ")
	if n, err := strconv.ParseInt(sec, 10, 64); err == nil {
		t = time.Unix(n, 0).UTC()
		if z, err := time.Parse("-0700", zone); err == nil {
			_, off := z.Zone()
			t = t.In(time.FixedZone("", off))
		}
	}
	return p, t
}

// Read gives a raw commit in the words that everyone shares, and what its trailers
// say of itself, which is a claim; see repo.proven.
func (c rawCommit) read(id packfile.Hash) (out space.Commit, tool, client string) {
	out = space.Commit{ID: packfile.CommitID(id), Author: c.author, Time: c.time}
	if len(c.parents) > 0 {
		out.Parent = packfile.CommitID(c.parents[0])
	}
	msg := strings.TrimRight(strings.ToValidUTF8(c.message, "\uFFFD"), "\n")
	// Our trailers are the last paragraph, and nothing but.
	if i := strings.LastIndex(msg, "\n\n"); i >= 0 {
		ours := true
		var t, cl string
		for line := range strings.SplitSeq(msg[i+2:], "\n") {
			if v, ok := strings.CutPrefix(line, trailerTool+": "); ok {
				t = v
			} else if v, ok := strings.CutPrefix(line, trailerClient+": "); ok {
				cl = v
			} else {
				ours = false
			}
		}
		if ours {
			tool, client = t, cl
			msg = strings.TrimRight(msg[:i], "\n")
		}
	}
	out.Message = msg
	return out, tool, client
}

// own is a commit that this server made.
func (c rawCommit) own(id packfile.Hash) space.Commit {
	out, tool, client := c.read(id)
	out.Tool, out.Client = tool, client
	return out
}
