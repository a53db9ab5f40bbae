package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tree is a value of a JSON or YAML document. Objects keep the order of their members. All
// methods but set work on nil, which stands for a value that the document does not have.
type tree struct {
	// scalar is the JSON text of a value that is neither an object nor a list.
	scalar string
	names  []string
	fields map[string]*tree // not nil for an object
	items  []*tree          // not nil for a list
}

// The limits of a document. Descriptions of large APIs have some 400,000 values, and no more
// than 30 levels.
const (
	maxTreeValues = 1 << 20
	maxTreeDepth  = 100
	// maxTreeParts is the most members or items that the methods all and list return. Many pages
	// can refer to the same value, and each page reads the value again.
	maxTreeParts = 20_000
	// maxYAML limits a YAML document, in bytes. For a document of many short values, the YAML
	// parser needs 100 times its size in memory, before maxTreeValues can stop it.
	maxYAML = 4 << 20
)

var errTree = errors.New("the document has too many values, or is nested too deeply")

// parseTree parses a JSON or YAML document.
func parseTree(content []byte) (t *tree, err error) {
	defer func() { // the YAML parser is not made for hostile documents
		if p := recover(); p != nil {
			err = fmt.Errorf("parse the document: panic: %v", p)
		}
	}()
	left := maxTreeValues
	if bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		d := json.NewDecoder(bytes.NewReader(content))
		d.UseNumber()
		return jsonTree(d, maxTreeDepth, &left)
	}
	if len(content) > maxYAML {
		return nil, fmt.Errorf("%w: YAML can have %d MB; convert it to JSON", errTree, maxYAML>>20)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(content, &doc); err != nil {
		return nil, fmt.Errorf("parse YAML: %w", err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, errors.New("the document is empty")
	}
	return yamlTree(doc.Content[0], maxTreeDepth, &left)
}

// jsonTree reads the next value.
func jsonTree(d *json.Decoder, depth int, left *int) (*tree, error) {
	if *left--; *left < 0 || depth == 0 {
		return nil, errTree
	}
	token, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	}
	switch token {
	case json.Delim('{'):
		t := &tree{fields: map[string]*tree{}}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, fmt.Errorf("parse JSON: %w", err)
			}
			v, err := jsonTree(d, depth-1, left)
			if err != nil {
				return nil, err
			}
			t.set(name.(string), v) // the decoder accepts only strings as names
		}
		_, err := d.Token()
		return t, err
	case json.Delim('['):
		t := &tree{items: []*tree{}}
		for d.More() {
			v, err := jsonTree(d, depth-1, left)
			if err != nil {
				return nil, err
			}
			t.items = append(t.items, v)
		}
		_, err := d.Token()
		return t, err
	}
	return scalarTree(token), nil
}

// yamlTree converts a node of YAML. Each use of an alias counts toward the limits.
func yamlTree(n *yaml.Node, depth int, left *int) (*tree, error) {
	if *left--; *left < 0 || depth == 0 {
		return nil, errTree
	}
	switch n.Kind {
	case yaml.AliasNode:
		return yamlTree(n.Alias, depth-1, left)
	case yaml.MappingNode:
		t := &tree{fields: map[string]*tree{}}
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, err := yamlTree(n.Content[i+1], depth-1, left)
			if err != nil {
				return nil, err
			}
			t.set(n.Content[i].Value, v)
		}
		return t, nil
	case yaml.SequenceNode:
		t := &tree{items: []*tree{}}
		for _, c := range n.Content {
			v, err := yamlTree(c, depth-1, left)
			if err != nil {
				return nil, err
			}
			t.items = append(t.items, v)
		}
		return t, nil
	}
	var v any
	if slices.Contains([]string{"!!int", "!!float", "!!bool", "!!null"}, n.ShortTag()) && n.Decode(&v) == nil {
		return scalarTree(v), nil
	}
	return scalarTree(n.Value), nil
}

func scalarTree(v any) *tree {
	b, err := json.Marshal(v)
	if err != nil { // such as the number .inf of YAML
		b = []byte(strconv.Quote(fmt.Sprint(v)))
	}
	return &tree{scalar: string(b)}
}

func (t *tree) set(name string, v *tree) {
	if t.fields[name] == nil {
		t.names = append(t.names, name)
	}
	t.fields[name] = v
}

// get returns the value at a path of names, or nil.
func (t *tree) get(path ...string) *tree {
	for _, name := range path {
		if t == nil {
			return nil
		}
		t = t.fields[name]
	}
	return t
}

// str returns the text at a path, or the JSON text of a number or a boolean, or "".
func (t *tree) str(path ...string) string {
	t = t.get(path...)
	if t == nil || t.scalar == "null" {
		return ""
	}
	var s string
	if json.Unmarshal([]byte(t.scalar), &s) == nil {
		return s
	}
	return t.scalar
}

func (t *tree) is(path ...string) bool {
	t = t.get(path...)
	return t != nil && t.scalar == "true"
}

// all returns the members of an object in their order.
func (t *tree) all() iter.Seq2[string, *tree] {
	return func(yield func(string, *tree) bool) {
		if t == nil {
			return
		}
		for _, name := range t.names[:min(len(t.names), maxTreeParts)] {
			if !yield(name, t.fields[name]) {
				return
			}
		}
	}
}

// list returns the items of a list.
func (t *tree) list(path ...string) []*tree {
	if t = t.get(path...); t == nil {
		return nil
	}
	return t.items[:min(len(t.items), maxTreeParts)]
}

// each calls f with every member that is called name, at any depth, in the order of the document.
// It does not search inside these members.
func (t *tree) each(name string, f func(*tree)) {
	for n, v := range t.all() {
		if n == name {
			f(v)
		} else {
			v.each(name, f)
		}
	}
	for _, v := range t.list() {
		v.each(name, f)
	}
}

// at returns the value that a JSON pointer such as /components/schemas/Pet names, or nil.
func (t *tree) at(pointer string) *tree {
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		if t == nil {
			return nil
		}
		if i, err := strconv.Atoi(name); err == nil && t.items != nil && i >= 0 && i < len(t.items) {
			t = t.items[i]
			continue
		}
		t = t.fields[name]
	}
	return t
}

// appendJSON appends the value as indented JSON, and adds no more members or items after limit
// bytes.
func (t *tree) appendJSON(out []byte, indent string, limit int) []byte {
	more := indent + "  "
	switch {
	case t == nil:
		return append(out, "null"...)
	case len(t.names) > 0:
		out = append(out, '{')
		for i, name := range t.names {
			if len(out) > limit {
				break
			}
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, "\n"+more+quoteJSON(name)+": "...)
			out = t.fields[name].appendJSON(out, more, limit)
		}
		return append(out, "\n"+indent+"}"...)
	case t.fields != nil:
		return append(out, "{}"...)
	case len(t.items) > 0:
		out = append(out, '[')
		for i, v := range t.items {
			if len(out) > limit {
				break
			}
			if i > 0 {
				out = append(out, ',')
			}
			out = v.appendJSON(append(out, "\n"+more...), more, limit)
		}
		return append(out, "\n"+indent+"]"...)
	case t.items != nil:
		return append(out, "[]"...)
	}
	var s string
	if json.Unmarshal([]byte(t.scalar), &s) == nil {
		return append(out, quoteJSON(s)...)
	}
	return append(out, t.scalar...)
}
