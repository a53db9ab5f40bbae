package facts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"satchel/internal/frontmatter"
	"satchel/internal/space"
)

// Field is a field to write into the front matter.
type Field struct {
	Key string
	// Value is a text, a number or a day. Nil removes the field.
	Value any
}

// Raw is a value that is written as it is, such as a number or a day.
type Raw string

// New returns a fact's file with these fields and no text below them.
func New(fields ...Field) []byte {
	var b strings.Builder
	b.WriteString("---\n")
	for _, f := range fields {
		if f.Value != nil {
			fmt.Fprintf(&b, "%s: %s\n", f.Key, written(f.Value))
		}
	}
	b.WriteString("---\n")
	return []byte(b.String())
}

// Template returns the file of a fact without a value, for a person to fill in.
func Template(now time.Time) []byte {
	doc, _ := Merge(nil, Statement{Explicit: true}, Origin{Client: space.ClientBrowser, Tool: ToolPages}, now)
	return doc
}

// Set changes fields of a fact's file. If the front matter has one line or block for each
// field, every other byte stays. Other front matter, such as a map in braces, is rewritten
// with the same values. The text below the front matter always stays. The error says why a
// person must fix the file by hand.
func Set(doc []byte, fields ...Field) ([]byte, error) {
	before, err := frontmatter.Parse(doc)
	if err != nil {
		return nil, err
	}
	if before.Fields == nil {
		return nil, errors.New("it has no front matter")
	}
	head, body := doc[:len(doc)-len(before.Body)], before.Body
	want := maps.Clone(before.Fields)
	for _, f := range fields {
		delete(want, f.Key)
		if f.Value != nil {
			want[f.Key] = meant(f.Value)
		}
	}
	for _, edit := range []func([]byte, []Field, map[string]any) ([]byte, error){byLine, anew} {
		out, err := edit(head, fields, want)
		if err != nil {
			continue
		}
		out = append(out, body...)
		if after, err := frontmatter.Parse(out); err == nil && reflect.DeepEqual(after.Fields, want) && bytes.Equal(after.Body, body) {
			return out, nil
		}
	}
	return nil, errors.New("its front matter cannot be changed here")
}

// meant returns the value that the parser reads back when v is written.
func meant(v any) any {
	if r, ok := v.(Raw); ok {
		var out any
		if d, err := frontmatter.Parse([]byte("---\nv: " + string(r) + "\n---\n")); err == nil {
			out = d.Fields["v"]
		}
		return out
	}
	return v
}

var (
	// plain matches text that YAML reads unchanged without quotes, unless it is one of words.
	plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.,/()+-]*( [A-Za-z0-9_.,/()+-]+)*$`)
	words = []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}
)

func written(v any) string {
	switch v := v.(type) {
	case Raw:
		return string(v)
	case string:
		if plain.MatchString(v) && !slices.Contains(words, strings.ToLower(v)) {
			return v
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			return `""`
		}
		// JSON does not escape these characters, but YAML reads them as line ends or forbids them.
		return strings.NewReplacer("\u0085", `\u0085`, "\u007f", `\u007f`, "\ufeff", `\ufeff`, "\ufffe", `\ufffe`, "\uffff", `\uffff`).Replace(strings.TrimSpace(b.String()))
	}
	return fmt.Sprint(v)
}

var keyLine = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]*)[ \t]*:([ \t\r\n]|$)`)

// byLine changes only the lines of the fields.
func byLine(head []byte, fields []Field, _ map[string]any) ([]byte, error) {
	lines := slices.Collect(strings.Lines(string(head)))
	if len(lines) < 2 {
		return nil, errors.New("no lines")
	}
	end := "\n"
	if strings.HasSuffix(lines[0], "\r\n") {
		end = "\r\n"
	}
	for _, f := range fields {
		from, to := extent(lines, f.Key)
		var now []string
		if f.Value != nil {
			now = []string{f.Key + ": " + written(f.Value) + end}
		}
		lines = slices.Replace(lines, from, to, now...)
	}
	return []byte(strings.Join(lines, "")), nil
}

// extent returns the range of a field's lines in the front matter. For a missing field, it returns
// the empty range before the line that ends the front matter.
func extent(lines []string, key string) (from, to int) {
	last := len(lines) - 1 // the line that ends the front matter
	for i := 1; i < last; i++ {
		m := keyLine.FindStringSubmatch(lines[i])
		if m == nil || m[1] != key {
			continue
		}
		to := i + 1
		for j := i + 1; j < last; j++ {
			l := lines[j]
			if strings.TrimSpace(l) == "" {
				continue // a blank line is part of the field if the next line is
			}
			if l[0] != ' ' && l[0] != '\t' && !strings.HasPrefix(l, "- ") && strings.TrimRight(l, "\r\n") != "-" {
				break
			}
			to = j + 1
		}
		return i, to
	}
	return last, last
}

// anew returns front matter that consists only of the wanted values.
func anew(head []byte, _ []Field, want map[string]any) ([]byte, error) {
	block, err := yaml.Marshal(want)
	if err != nil {
		return nil, fmt.Errorf("front matter: %w", err)
	}
	ends := "---\n"
	if bytes.HasSuffix(head, []byte("---")) {
		ends = "---" // the file ends here, without a line end
	}
	return []byte("---\n" + string(block) + ends), nil
}
