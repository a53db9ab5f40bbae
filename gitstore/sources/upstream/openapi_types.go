package upstream

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// typeOf returns the type of a schema in words, such as
// "array of [Pet](../schemas/Pet.md) or null".
func (w *apiPage) typeOf(s *tree) string {
	var out strings.Builder
	w.writeType(&out, s, 0)
	return cmp.Or(out.String(), "any")
}

// writeType writes the type of a schema. The limits of depth and length end the recursion for
// schemas that contain each other.
func (w *apiPage) writeType(out *strings.Builder, s *tree, depth int) {
	if depth > maxAPINesting || out.Len() > maxAPIType {
		out.WriteString("…")
		return
	}
	if s == nil || s.scalar == "true" {
		out.WriteString("any")
		return
	}
	if pointer := refOf(s); pointer != "" {
		if named := w.d.schemaAt[pointer]; named != nil {
			out.WriteString(w.link(named))
		} else {
			w.writeType(out, w.d.resolve(s), depth+1)
		}
		return
	}
	if ref := s.str("$ref"); ref != "" {
		out.WriteString("`" + short(ref, 200) + "`") // the reference leads to another document
		return
	}
	for _, group := range []struct{ name, word string }{{"oneOf", " or "}, {"anyOf", " or "}, {"allOf", " and "}} {
		parts := s.list(group.name)
		for i, part := range parts {
			if i > 0 {
				out.WriteString(group.word)
			}
			if out.Len() > maxAPIType {
				out.WriteString("…")
				return
			}
			w.writeType(out, part, depth+1)
		}
		if len(parts) > 0 {
			w.nullable(out, s)
			return
		}
	}
	types := s.list("type")
	if types == nil {
		types = []*tree{s.get("type")}
	}
	for i, t := range types {
		if i > 0 {
			out.WriteString(" or ")
		}
		if out.Len() > maxAPIType {
			break
		}
		switch name := short(t.str(), 50); {
		case name == "array" || name == "" && s.get("items") != nil:
			out.WriteString("array of ")
			w.writeType(out, s.get("items"), depth+1)
		case name == "object" || name == "" && s.get("properties") != nil:
			if values := s.get("additionalProperties"); values != nil && values.scalar != "false" && s.get("properties") == nil {
				out.WriteString("object with values of type ")
				w.writeType(out, values, depth+1)
			} else {
				out.WriteString("object")
			}
		case name == "" && t != nil && t.scalar == "null":
			out.WriteString("null")
		case name == "":
			out.WriteString("any")
		case s.str("format") != "":
			out.WriteString(name + " (" + short(s.str("format"), 50) + ")")
		default:
			out.WriteString(name)
		}
	}
	w.nullable(out, s)
}

// nullable writes that a value can be null, if the schema says so: OpenAPI 3.0 has the keyword
// nullable, and extended Swagger documents have x-nullable.
func (w *apiPage) nullable(out *strings.Builder, s *tree) {
	if s.is("nullable") || s.is("x-nullable") {
		out.WriteString(" or null")
	}
}

// constraints returns what a schema demands of a value, as sentences.
func constraints(s *tree) string {
	var out []string
	code := func(t *tree) string {
		return "`" + strings.ReplaceAll(short(string(t.appendJSON(nil, "", 200)), 200), "`", "'") + "`"
	}
	values := func(list []*tree) string {
		var all []string
		for i, v := range list {
			if i == maxAPIEnum {
				all = append(all, "…")
				break
			}
			all = append(all, code(v))
		}
		return strings.Join(all, ", ")
	}
	if enum := s.list("enum"); len(enum) > 0 {
		out = append(out, "One of "+values(enum)+".")
	} else if enum := s.list("items", "enum"); len(enum) > 0 {
		out = append(out, "Items are one of "+values(enum)+".")
	}
	for _, c := range []struct{ name, words string }{
		{"const", "Always"}, {"default", "Default"}, {"minimum", "At least"}, {"maximum", "At most"},
		{"exclusiveMinimum", "More than"}, {"exclusiveMaximum", "Less than"}, {"minLength", "Minimum length"}, {"maxLength", "Maximum length"},
		{"minItems", "Minimum count"}, {"maxItems", "Maximum count"}, {"pattern", "Pattern"},
	} {
		// Before OpenAPI 3.1, the exclusive limits were booleans.
		if v := s.get(c.name); v != nil && !(strings.HasPrefix(c.name, "exclusive") && (v.scalar == "true" || v.scalar == "false")) {
			out = append(out, c.words+" "+code(v)+".")
		}
	}
	if s.is("readOnly") {
		out = append(out, "Only in responses.")
	}
	if s.is("writeOnly") {
		out = append(out, "Only in requests.")
	}
	return strings.Join(out, " ")
}

// apiTable is a table of parameters or fields.
type apiTable struct {
	w        *apiPage
	out      strings.Builder
	in       bool // whether a column says where each parameter is, such as in the query
	rows     int
	heading  string
	expanded map[*tree]bool // the objects that contain the current row, so that cycles end
}

func (w *apiPage) table(heading, in string) *apiTable {
	return &apiTable{w: w, heading: heading, in: in != "", expanded: map[*tree]bool{}}
}

// row writes a row. described is the value with the schema, such as a parameter, or the schema
// itself. Its description is preferred to that of the schema.
func (t *apiTable) row(name, in string, schema *tree, required bool, described *tree) {
	if t.rows++; t.rows > maxAPIRows || t.w.Len()+t.out.Len() > maxAPIPage {
		return
	}
	text := cmp.Or(described.str("description"), schema.str("description"), t.w.d.resolve(schema).str("title"))
	if described.is("deprecated") || schema.is("deprecated") {
		text = "**Deprecated.** " + text
	}
	cells := []string{"`" + name + "`"}
	if t.in {
		cells = append(cells, in)
	}
	cells = append(cells, t.w.typeOf(schema), map[bool]string{true: "yes", false: "no"}[required],
		strings.TrimSpace(short(text, maxAPICell)+" "+constraints(schema)+exampleOf(described)))
	for i, c := range cells {
		if i != len(cells)-3 { // in the column of types, links are already escaped
			c = strings.ReplaceAll(c, "|", "\\|")
		}
		t.out.WriteString("| " + oneLine(c) + " ")
	}
	t.out.WriteString("|\n")
}

func exampleOf(t *tree) string {
	e := t.get("example")
	if e == nil || e.fields != nil || e.items != nil || e.str() == "" {
		return ""
	}
	return " Example: `" + strings.ReplaceAll(short(e.str(), 200), "`", "'") + "`."
}

// fields writes the fields of a schema and of the objects in it, but not of schemas to which a
// reference leads.
func (t *apiTable) fields(prefix string, s *tree, depth int) {
	if s == nil || depth > maxAPINesting || t.rows > maxAPIRows || t.expanded[s] {
		return
	}
	t.expanded[s] = true
	defer delete(t.expanded, s)
	for _, group := range []string{"allOf", "oneOf", "anyOf"} {
		for _, part := range s.list(group) {
			if refOf(part) == "" {
				t.fields(prefix, part, depth+1)
			}
		}
	}
	required := map[string]bool{}
	for _, name := range s.list("required") {
		required[name.str()] = true
	}
	for name, field := range s.get("properties").all() {
		if t.rows > maxAPIRows {
			return
		}
		t.row(prefix+oneLine(name), "", field, required[name], field)
		if refOf(field) == "" {
			t.fields(prefix+oneLine(name)+".", field, depth+1)
		}
	}
	if items := s.get("items"); items != nil && refOf(items) == "" {
		t.fields(strings.TrimSuffix(prefix, ".")+"[].", items, depth+1)
	}
	if values := s.get("additionalProperties"); values != nil && refOf(values) == "" {
		t.fields(prefix+"*.", values, depth+1)
	}
}

// write adds the table to the page.
func (t *apiTable) write(title string) {
	t.w.text(title)
	columns := []string{t.heading}
	if t.in {
		columns = append(columns, "in")
	}
	columns = append(columns, "type", "required", "description")
	fmt.Fprintf(t.w, "| %s |\n|%s\n%s\n", strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)), t.out.String())
	if t.rows > maxAPIRows {
		t.w.text(fmt.Sprintf("The document has more than these %d.", maxAPIRows))
	}
}

// short returns a text on one line, cut to max bytes.
func short(s string, max int) string { return cut(oneLine(cut(s, 4*max)), max) }

// cut returns a text. If the text is longer than max bytes, an ellipsis replaces the rest.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + "…"
}
