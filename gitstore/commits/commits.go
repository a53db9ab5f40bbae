package commits

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/packfile"
	"satchel/internal/bytesize"
	"satchel/internal/space"
)

// The trailers that Encode adds to a message. With them, a person can find and revert the commits
// of a client.
const (
	trailerTool   = "Satchel-Tool"
	trailerClient = "Satchel-Client"
)

// Limits of the parts of a commit object, in bytes.
const (
	MaxMessage = 64 << 10
	maxTrailer = 200
	MaxName    = 200

	MaxRead   = MaxMessage + 4<<10 // of a message that is read
	MaxPerson = 1000               // of a name or an address that is read
)

// Raw is a decoded commit object.
type Raw struct {
	Tree    packfile.Hash
	Parents []packfile.Hash
	Author  space.Person
	// Authored is the author date, or the committer date if the author date cannot be
	// read.
	Authored time.Time
	Time     time.Time // the committer date
	Message  string
}

// Encode returns an encoded commit object. If m has no message, summary is the message.
func Encode(tree packfile.Hash, parents []packfile.Hash, m space.Meta, summary string, committer space.Person) []byte {
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
	fmt.Fprintf(&b, "author %s %s\n", Ident(m.Author, "Satchel user"), stamp)
	fmt.Fprintf(&b, "committer %s %s\n\n", Ident(committer, "Satchel"), stamp)
	b.WriteString(CleanMessage(m.Message, summary))
	b.WriteString("\n")
	sep := "\n"
	for _, t := range [][2]string{{trailerTool, m.Tool}, {trailerClient, m.Client}} {
		if v := OneLine(t[1], maxTrailer); v != "" {
			fmt.Fprintf(&b, "%s%s: %s\n", sep, t[0], v)
			sep = ""
		}
	}
	return []byte(b.String())
}

// Ident formats a person as git does. It removes characters that would end the name,
// the address or the line. fallback replaces an empty name.
func Ident(p space.Person, fallback string) string {
	clean := func(s string) string {
		s = strings.Map(func(r rune) rune {
			if r == '<' || r == '>' {
				return -1
			}
			return r
		}, OneLine(s, MaxName))
		return strings.Trim(s, " .,:;\"'\\")
	}
	name := clean(p.Name)
	if name == "" {
		name = fallback
	}
	return fmt.Sprintf("%s <%s>", name, strings.ReplaceAll(clean(p.Email), " ", ""))
}

// OneLine turns s into a single line of valid UTF-8 without control characters, of at
// most max bytes.
func OneLine(s string, max int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return Cut(strings.Join(strings.Fields(s), " "), max)
}

// Cut shortens s to at most max bytes without splitting a rune.
func Cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// CleanMessage turns a caller's comment into a valid commit message. A blank comment
// becomes summary. CleanMessage indents lines that look like the trailers of this package.
func CleanMessage(msg, summary string) string {
	msg = strings.ToValidUTF8(strings.ReplaceAll(msg, "\r\n", "\n"), "\uFFFD")
	msg = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, msg)
	lines := strings.Split(Cut(msg, MaxMessage), "\n")
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

// ClaimedTools lists the tools that the Satchel-Tool trailers in a message name. It finds trailers
// anywhere, because git and its hosts add lines after them, and indent or quote the
// trailers of squashed commits. A message longer than MaxRead may name any tool, so its
// result is never empty.
func ClaimedTools(msg string) (tools []string) {
	if len(msg) > MaxRead {
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

// Summarize returns the message of a commit whose author gave none.
func Summarize(files []space.FileChange) string {
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
	first = Cut(first, 120)
	switch n := len(files); n {
	case 1:
		return verb + " " + first
	case 2:
		return verb + " " + first + " and 1 other file"
	default:
		return fmt.Sprintf("%s %s and %d other files", verb, first, n-1)
	}
}

// Parse decodes a commit object.
func Parse(data []byte) (Raw, error) {
	var c Raw
	rawHead, msg, _ := bytes.Cut(data, []byte("\n\n"))
	head := string(rawHead)
	c.Message = readMessage(msg)
	for line := range strings.SplitSeq(head, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		var err error
		switch word {
		case "tree":
			c.Tree, err = packfile.HashFrom(rest)
		case "parent":
			var p packfile.Hash
			p, err = packfile.HashFrom(rest)
			c.Parents = append(c.Parents, p)
		case "author":
			c.Author, c.Authored = parseIdent(rest)
		case "committer":
			_, c.Time = parseIdent(rest)
		}
		if err != nil {
			return c, fmt.Errorf("malformed commit: %w", err)
		}
	}
	if c.Authored.IsZero() {
		c.Authored = c.Time
	}
	if !strings.HasPrefix(head, "tree ") {
		return c, fmt.Errorf("malformed commit: it names no tree")
	}
	return c, nil
}

// readMessage returns a commit's message, cut after MaxRead bytes with a note that says
// so. A foreign message may be as long as git allows.
func readMessage(msg []byte) string {
	if len(msg) <= MaxRead {
		return string(msg)
	}
	return Cut(string(msg[:MaxRead+utf8.UTFMax]), MaxRead) + fmt.Sprintf("\n\n[The message is longer than %s; the rest is left out here.]\n", bytesize.Text(MaxRead))
}

// PersonIn returns the start and the end of the name and address in an author or
// committer line of a commit's header. The end is 0 if the line has no person.
func PersonIn(line []byte) (from, to int) {
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
	p.Name = strings.ToValidUTF8(Cut(strings.TrimSpace(s[:lt]), MaxPerson), "\uFFFD")
	p.Email = strings.ToValidUTF8(Cut(s[lt+1:gt], MaxPerson), "\uFFFD")
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

// Read returns c as a space.Commit, and the tool and client that its trailers claim.
// Anybody can write such trailers.
func (c Raw) Read(id packfile.Hash) (out space.Commit, tool, client string) {
	out = space.Commit{ID: packfile.CommitID(id), Author: c.Author, Time: c.Time}
	if len(c.Parents) > 0 {
		out.Parent = packfile.CommitID(c.Parents[0])
	}
	msg := strings.TrimRight(strings.ToValidUTF8(c.Message, "\uFFFD"), "\n")
	// The last paragraph counts only if it contains nothing but trailers of this package.
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

// Own is like Read, for a commit that this server made. It trusts the trailers.
func (c Raw) Own(id packfile.Hash) space.Commit {
	out, tool, client := c.Read(id)
	out.Tool, out.Client = tool, client
	return out
}

// Get reads a commit. It cuts a message that is longer than MaxRead.
func Get(db *packfile.DB, h packfile.Hash) (Raw, error) {
	o, size, err := db.ReadStart(h, MaxStart)
	if err == nil && int64(len(o.Data)) < size && !bytes.Contains(o.Data, []byte("\n\n")) {
		o, err = db.Read(h) // the header is longer than MaxStart
	}
	if err != nil {
		return Raw{}, err
	}
	if o.Kind != plumbing.CommitObject {
		return Raw{}, fmt.Errorf("object %s is a %s, not a commit", h, o.Kind)
	}
	return Parse(o.Data)
}

// MaxStart is the number of bytes that Get reads of a commit, if its header fits into them.
const MaxStart = 4 * MaxRead

// Reaches reports whether old is h or an ancestor of it. It returns false if a commit
// is missing.
func Reaches(db *packfile.DB, h, old packfile.Hash) (bool, error) {
	queue, seen := []packfile.Hash{h}, map[packfile.Hash]bool{}
	for len(queue) > 0 {
		c := queue[0]
		queue = queue[1:]
		if c == old {
			return true, nil
		}
		if seen[c] {
			continue
		}
		seen[c] = true
		raw, err := Get(db, c)
		if errors.Is(err, packfile.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		queue = append(queue, raw.Parents...)
	}
	return false, nil
}

// Ancestry adds the commits of from and their ancestors to seen. It does not follow
// commits that seen already has.
func Ancestry(ctx context.Context, db *packfile.DB, from []packfile.Hash, seen map[packfile.Hash]bool) error {
	for queue := from; len(queue) > 0; {
		h := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if seen[h] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c, err := Get(db, h)
		if err != nil {
			return err
		}
		seen[h] = true
		queue = append(queue, c.Parents...)
	}
	return nil
}
