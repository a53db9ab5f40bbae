// Package frontmatter reads the YAML block at the start of a Markdown document: a page's
// title and description, a skill's name, a memory fact's value. Call Parse first.
//
// The document may come from an AI, a stranger or a sandbox, so the package reads only plain
// data. It refuses aliases, anchors and duplicate keys. The size, the depth and the number of
// values are limited, and the content never chooses a Go type. A document with an unreadable
// block still has a body.
package frontmatter

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Limits of one block. A block that exceeds a limit is an error and is never cut.
const (
	MaxBytes  = 64 << 10
	MaxDepth  = 16
	MaxValues = 4096
)

// Document is a document, split into its block and its body.
type Document struct {
	// Fields holds the block's keys. Values are string, bool, int64, float64, nil, []any and
	// map[string]any, so that they can be written as JSON. Dates stay as they are written.
	// Fields is nil if there is no block or if it cannot be read.
	Fields map[string]any
	// Body is the text after the block, or the whole document if there is no block. It shares
	// the document's memory.
	Body []byte
	// BodyLine is the line of the document, counted from 1, at which Body begins.
	BodyLine int
	// written holds the texts that Written returns, by key in lower case.
	written map[string][]string
}

// Parse splits a document. The error says why the block cannot be read, in words for the
// author. The Document then still has its Body.
func Parse(doc []byte) (Document, error) {
	block, d := split(doc)
	if block == nil {
		return d, nil
	}
	var err error
	d.Fields, d.written, err = parseBlock(block)
	return d, err
}

// String returns a field that is a string, a number or a truth value as one line of text. A
// number gets its shortest form, so 5.10 becomes 5.1. String returns "" for every other field.
func (d Document) String(key string) string {
	switch v := d.Fields[key].(type) {
	case string:
		return strings.Join(strings.Fields(v), " ")
	case bool, int64, float64:
		return fmt.Sprint(v)
	}
	return ""
}

// Strings returns the texts of a field that is a list, one text, or several texts separated by
// commas ("tags: a, b").
func (d Document) Strings(key string) []string {
	switch v := d.Fields[key].(type) {
	case string:
		var out []string
		for s := range strings.SplitSeq(v, ",") {
			if s = strings.TrimSpace(s); s != "" {
				out = append(out, s)
			}
		}
		return out
	case []any:
		var out []string
		for _, e := range v {
			switch e := e.(type) {
			case string:
				out = append(out, e)
			case bool, int64, float64:
				out = append(out, fmt.Sprint(e))
			}
		}
		return out
	}
	return nil
}

// Bool reports whether the field is the truth value true.
func (d Document) Bool(key string) bool {
	b, _ := d.Fields[key].(bool)
	return b
}

// Number returns the field as a number. ok is false if it is not a number.
func (d Document) Number(key string) (f float64, ok bool) {
	switch v := d.Fields[key].(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// split finds the block between a first line "---" and the next line "---" or "...". There is
// no block without both lines, because a document may begin with a horizontal rule.
func split(doc []byte) (block []byte, d Document) {
	whole := Document{Body: doc, BodyLine: 1}
	rest := bytes.TrimPrefix(doc, []byte("\ufeff"))
	first, rest, ok := cutLine(rest)
	if !ok || string(first) != "---" {
		return nil, whole
	}
	start, line := rest, 2
	for {
		l, next, more := cutLine(rest)
		if s := string(l); s == "---" || s == "..." {
			block = start[:len(start)-len(rest)]
			if block == nil {
				block = []byte{}
			}
			return block, Document{Body: next, BodyLine: line + 1}
		}
		if !more {
			return nil, whole
		}
		rest = next
		line++
	}
}

// cutLine returns the first line without its end and trailing spaces. more is false if it is
// the last line.
func cutLine(b []byte) (line, rest []byte, more bool) {
	line, rest, more = bytes.Cut(b, []byte("\n"))
	return bytes.TrimRight(line, " \t\r"), rest, more
}

func parseBlock(block []byte) (fields map[string]any, written map[string][]string, err error) {
	if len(block) > MaxBytes {
		return nil, nil, fmt.Errorf("the front matter has %d bytes, and %d are allowed", len(block), MaxBytes)
	}
	if !utf8.Valid(block) {
		return nil, nil, errors.New("the front matter is not valid UTF-8")
	}
	var doc yaml.Node
	if err := decode(block, &doc); err != nil {
		return nil, nil, fmt.Errorf("the front matter is not valid YAML (%s)", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 {
		return map[string]any{}, nil, nil // an empty block
	}
	c := converter{left: MaxValues}
	v, err := c.value(doc.Content[0], 0)
	if err != nil {
		return nil, nil, err
	}
	switch v := v.(type) {
	case map[string]any:
		return v, texts(doc.Content[0]), nil
	case nil:
		return map[string]any{}, nil, nil
	}
	return nil, nil, errors.New("the front matter is not a list of “key: value” lines")
}

// decode parses into a tree of nodes. Aliases are not expanded there, so a small document cannot
// become a large one. A panic of the parser counts as malformed YAML.
func decode(block []byte, into *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml parser: %v", p)
		}
	}()
	return yaml.Unmarshal(block, into)
}

type converter struct{ left int }

func (c *converter) value(n *yaml.Node, depth int) (any, error) {
	bad := func(why string) (any, error) {
		return nil, fmt.Errorf("line %d of the front matter: %s", n.Line, why)
	}
	if c.left--; c.left < 0 {
		return bad(fmt.Sprintf("more than %d values", MaxValues))
	}
	if depth > MaxDepth {
		return bad(fmt.Sprintf("nested more than %d levels deep", MaxDepth))
	}
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		return bad("anchors and aliases (& and *) are not allowed; quote the text if it was meant as such")
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode || k.Anchor != "" {
				return bad("a key must be a word")
			}
			if _, dup := m[k.Value]; dup {
				return bad(fmt.Sprintf("the key %q occurs twice", k.Value))
			}
			v, err := c.value(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			m[k.Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		s := make([]any, 0, len(n.Content))
		for _, e := range n.Content {
			v, err := c.value(e, depth+1)
			if err != nil {
				return nil, err
			}
			s = append(s, v)
		}
		return s, nil
	}
	return scalar(n), nil
}

// scalar returns a number or a truth value with its type. For everything else, including dates
// and unknown tags, it returns the written text.
func scalar(n *yaml.Node) any {
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int":
		var i int64
		if n.Decode(&i) == nil {
			return i
		}
	case "!!float":
		var f float64
		if n.Decode(&f) == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	}
	return n.Value
}
