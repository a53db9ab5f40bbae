package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// readYAML sets the keys in a file. It refuses aliases, merge keys and tags, because they
// would hide where a value comes from.
func (l *loader) readYAML(name string, text []byte) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) { // EOF means that the file is empty
			l.yamlError(name, err)
		}
		return
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		l.mistake(place(name, &second), "a second document begins here; a configuration has only one")
		return
	} else if !errors.Is(err, io.EOF) {
		l.yamlError(name, err)
		return
	}
	if len(doc.Content) != 1 {
		return
	}
	root := doc.Content[0]
	if root.ShortTag() == "!!null" {
		return // there are only comments
	}
	if root.Kind != yaml.MappingNode {
		l.mistake(place(name, root), "the configuration must be keys and values, such as %q", "server:")
		return
	}
	l.mapping(name, "", root)
}

func (l *loader) yamlError(name string, err error) {
	msg := err.Error()
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		msg = msg[len(m[0]):]
		if m[1] != "" {
			name += ":" + m[1]
		}
	}
	l.mistake(name, "it is not valid YAML: %s", msg)
}

func place(name string, n *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", name, n.Line, n.Column)
}

// mapping reads the keys of one section, or of the whole file if in is "".
func (l *loader) mapping(name, in string, m *yaml.Node) {
	seen := map[string]int{}
	for i := 0; i+1 < len(m.Content); i += 2 {
		k, v := m.Content[i], m.Content[i+1]
		where := place(name, k)
		if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
			l.mistake(where, "a key must be a plain word")
			continue
		}
		path := k.Value
		if in != "" {
			path = in + "." + k.Value
		}
		if line, twice := seen[path]; twice {
			l.mistake(where, "%.80s is there already, in line %d", path, line)
			continue
		}
		seen[path] = k.Line
		if path == sourcesKey {
			l.sources(name, v)
			continue
		}
		if j := slices.IndexFunc(l.keys, func(x key) bool { return x.path == path }); j >= 0 {
			l.value(name, &l.keys[j], v)
			continue
		}
		if slices.ContainsFunc(sections()[1:], func(s section) bool { return s.name == path }) {
			switch {
			case v.Kind == yaml.MappingNode:
				l.mapping(name, path, v)
			case v.ShortTag() != "!!null": // a section whose keys are all comments is valid
				l.mistake(place(name, v), "%s must be keys and values below it, indented", path)
			}
			continue
		}
		l.unknownKey(where, path, v)
	}
}

// unknownKey reports an unknown key with the nearest known one.
func (l *loader) unknownKey(where, path string, v *yaml.Node) {
	var known []string
	if v.Kind == yaml.MappingNode {
		for _, s := range sections()[1:] {
			known = append(known, s.name)
		}
	}
	known = append(known, sourcesKey)
	for i := range l.keys {
		known = append(known, l.keys[i].path)
	}
	l.unknown(where, fmt.Sprintf("key %.80q", path), nearest(path, known))
}

// value sets one key from its node.
func (l *loader) value(name string, k *key, v *yaml.Node) {
	where := place(name, v)
	l.origin[k.path] = where
	switch {
	case v.Kind == yaml.AliasNode || v.Anchor != "":
		l.spoil(k, where, "%s: anchors and aliases are not used in a configuration; write the value", k.path)
		return
	case v.ShortTag() == "!!null":
		l.spoil(k, where, "%s has no value; take the line out for its default", k.path)
		return
	case v.Style&yaml.TaggedStyle != 0:
		l.spoil(k, where, "%s: tags are not used in a configuration; write only the value", k.path)
		return
	case v.Kind == yaml.SequenceNode && slices.Contains(k.tags, "!!seq"):
		l.sequence(name, k, v)
		return
	case v.Kind != yaml.ScalarNode || !slices.Contains(k.tags, v.ShortTag()) && v.Value != "0":
		// A duration may be "0" without a unit.
		l.spoil(k, where, "%s must be %s%s", k.path, k.form, l.describe(k, v))
		return
	}
	l.set(k, where, v.Value)
}

func (l *loader) sequence(name string, k *key, v *yaml.Node) {
	var items []string
	for _, item := range v.Content {
		if item.Kind != yaml.ScalarNode || item.ShortTag() != "!!str" || strings.Contains(item.Value, ",") || item.Anchor != "" {
			l.spoil(k, place(name, item), "%s must be a list of texts without commas%s", k.path, l.describe(k, item))
			return
		}
		items = append(items, item.Value)
	}
	l.set(k, place(name, v), strings.Join(items, ","))
}

func (l *loader) describe(k *key, v *yaml.Node) string {
	switch {
	case k.secret:
		return ""
	case v.Kind == yaml.MappingNode:
		return ", not keys and values"
	case v.Kind == yaml.SequenceNode:
		return ", not a list"
	case v.Kind == yaml.AliasNode:
		return ", not an alias"
	}
	if v.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		return fmt.Sprintf(", not the text %.80q", v.Value)
	}
	switch v.ShortTag() {
	case "!!int", "!!float":
		return fmt.Sprintf(", not the number %.80s", v.Value)
	case "!!bool":
		return fmt.Sprintf(", not %.80s; quote it if you mean the text", v.Value)
	}
	return fmt.Sprintf(", not %.80q", v.Value)
}
