package frontmatter

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Skip returns the byte at which a document's body begins. It does not read the block.
func Skip(doc []byte) int {
	_, d := split(doc)
	return len(doc) - len(d.Body)
}

// ParseLoosely splits a document for readers that prefer a part of the fields to none. If
// Parse refuses the block, Fields is nil, and [Document.Written] returns the texts of the block's
// "key: value" lines, such as a title with an unquoted colon. Invalid UTF-8 is left out of them.
// Written returns nothing for a block that is too long.
func ParseLoosely(doc []byte) Document {
	d, err := Parse(doc)
	if err == nil {
		return d
	}
	block, _ := split(doc)
	if len(block) > MaxBytes {
		return d
	}
	d.written = map[string][]string{}
	for line := range bytes.Lines(block) {
		k, v, ok := strings.Cut(strings.ToValidUTF8(string(line), ""), ":")
		if !ok || k == "" || k != strings.TrimSpace(k) || len(d.written) == MaxValues {
			continue
		}
		if v = strings.Trim(strings.TrimSpace(v), `"'`); v != "" {
			addWritten(d.written, k, v)
		}
	}
	return d
}

// Written returns the texts of a field as its author wrote them, so that the version 5.10
// does not become 5.1. A scalar has one text, and a list has the texts of its scalars. The
// key may have any case. If several keys differ only in case, the first counts.
func (d Document) Written(key string) []string { return d.written[strings.ToLower(key)] }

// texts collects the texts of a block's mapping for Written.
func texts(m *yaml.Node) map[string][]string {
	all := make(map[string][]string, len(m.Content)/2)
	for i := 0; i+1 < len(m.Content); i += 2 {
		addWritten(all, m.Content[i].Value, scalars(m.Content[i+1])...)
	}
	return all
}

func addWritten(all map[string][]string, key string, texts ...string) {
	key = strings.ToLower(key)
	if _, ok := all[key]; !ok && len(texts) > 0 {
		all[key] = texts
	}
}

// scalars returns the texts of a scalar or of a flat list.
func scalars(n *yaml.Node) (texts []string) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag != "!!null" {
			texts = []string{n.Value}
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			if c.Kind == yaml.ScalarNode {
				texts = append(texts, c.Value)
			}
		}
	}
	return texts
}
