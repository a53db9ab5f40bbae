package upstream

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"satchel/internal/space"
)

// The limits of a page. A hostile document of 16 MB could describe pages of any size.
const (
	maxAPIPage    = 256 << 10
	maxAPIRows    = 300  // rows of a table
	maxAPICell    = 2000 // bytes of a description in a table
	maxAPIType    = 600  // bytes of a type
	maxAPINesting = 6    // levels of objects in a table and in a type
	maxAPIExample = 16 << 10
	maxAPIEnum    = 60
	maxAPIName    = 300 // bytes of a name
)

// apiPage writes a page of an API.
type apiPage struct {
	bytes.Buffer
	d    *api
	path space.Path
}

func (d *api) page(p space.Path, title, pointer string) *apiPage {
	w := &apiPage{d: d, path: p}
	w.Write(frontMatter([2]string{"title", title}, [2]string{"url", d.addressOf(pointer)}))
	fmt.Fprintf(w, "# %s\n\n", title)
	return w
}

// done returns the page, with a note if its end was left out.
func (w *apiPage) done() []byte {
	if w.full() {
		w.WriteString("\nThe page is too long. The document has the rest.\n")
	}
	return append(bytes.TrimSpace(w.Bytes()), '\n')
}

func (w *apiPage) full() bool { return w.Len() > maxAPIPage }

// text writes a paragraph, unless the paragraph is empty or the page is full.
func (w *apiPage) text(s string) {
	if s = strings.TrimSpace(cut(s, maxAPIPage)); s != "" && !w.full() {
		w.WriteString(s + "\n\n")
	}
}

func (w *apiPage) deprecated(t *tree) {
	if t.is("deprecated") {
		w.text("**Deprecated.**")
	}
}

// index returns the start page: what the API is, and its operations by tag.
func (d *api) index() []byte {
	w := d.page("index.md", d.title(), "")
	if v := short(d.root.str("info", "version"), maxAPIName); v != "" {
		w.text("Version " + v)
	}
	w.text(cmp.Or(d.root.str("info", "description"), d.root.str("info", "summary")))
	w.servers(d.root)
	w.authentication()
	described := map[string]string{}
	for _, t := range d.root.list("tags") {
		described[t.str("name")] = t.str("description")
	}
	names, of := d.tags()
	for _, tag := range names {
		if len(of[tag]) == 0 || w.full() {
			continue
		}
		fmt.Fprintf(w, "## %s\n\n", cmp.Or(short(tag, 200), "Operations"))
		w.text(described[tag])
		for _, op := range of[tag] {
			if w.full() {
				break
			}
			note := ""
			if op.is("deprecated") {
				note = " (deprecated)"
			}
			fmt.Fprintf(w, "- [%s %s](%s): %s%s\n", op.method, op.route, relative(w.path, op.path), op.title(), note)
		}
		w.WriteByte('\n')
	}
	if len(d.schemas) > 0 {
		w.text("## Schemas")
	}
	for _, s := range d.schemas {
		if w.full() {
			break
		}
		fmt.Fprintf(w, "- [%s](%s)\n", s.name, relative(w.path, s.path))
	}
	return w.done()
}

func (w *apiPage) servers(t *tree) {
	for _, s := range t.list("servers") {
		w.text(strings.TrimSpace("Server: `" + short(s.str("url"), maxAPIName) + "` " + short(s.str("description"), maxAPIName)))
	}
	if host := t.str("host"); host != "" { // Swagger
		scheme := "https"
		if s := t.list("schemes"); len(s) > 0 {
			scheme = s[0].str()
		}
		w.text("Server: `" + short(scheme+"://"+host+t.str("basePath"), maxAPIName) + "`")
	}
}

// authentication writes the ways to authenticate.
func (w *apiPage) authentication() {
	schemes := w.d.root.get("components", "securitySchemes")
	if schemes == nil {
		schemes = w.d.root.get("securityDefinitions")
	}
	if schemes == nil || len(schemes.names) == 0 {
		return
	}
	w.text("## Authentication")
	for name, s := range schemes.all() {
		if w.full() {
			return
		}
		s = w.d.resolve(s)
		how := short(s.str("type"), maxAPIName)
		switch how {
		case "http":
			how = "HTTP " + short(s.str("scheme"), maxAPIName)
		case "apiKey":
			how = fmt.Sprintf("key in the %s `%s`", short(s.str("in"), maxAPIName), short(s.str("name"), maxAPIName))
		case "openIdConnect":
			how = "OpenID Connect, `" + short(s.str("openIdConnectUrl"), maxAPIName) + "`"
		}
		fmt.Fprintf(w, "- `%s`: %s. %s\n", name, how, short(s.str("description"), maxAPICell))
	}
	w.WriteByte('\n')
}

// operation returns the page of an operation.
func (d *api) operation(op *apiOperation) []byte {
	w := d.page(op.path, op.title(), op.pointer)
	w.text("`" + op.method + " " + short(op.route, maxAPIName) + "`")
	w.deprecated(op.tree)
	w.text(op.str("description"))
	w.servers(op.tree)
	w.auth(op)
	parameters := d.parameters(op)
	t := w.table("parameter", "in")
	var body *tree
	for _, p := range parameters {
		schema := p.get("schema")
		for _, media := range p.get("content").all() {
			schema = media.get("schema")
		}
		switch {
		case p.str("in") == "body": // Swagger
			body = p
			continue
		case schema == nil:
			schema = p // Swagger
		}
		t.row(p.str("name"), p.str("in"), schema, p.is("required"), p)
	}
	if t.rows > 0 {
		t.write("## Parameters")
	}
	if b := d.resolve(op.get("requestBody")); b != nil {
		w.text("## Request body")
		if b.is("required") {
			w.text("Required.")
		}
		w.text(b.str("description"))
		w.content(b.get("content"))
	} else if body != nil {
		w.text("## Request body")
		w.text(body.str("description"))
		w.schema(body.get("schema"))
	}
	if op.get("responses") != nil {
		w.text("## Responses")
	}
	for status, r := range op.get("responses").all() {
		if w.full() {
			break
		}
		r = d.resolve(r)
		w.text("### " + short(status, maxAPIName))
		w.text(r.str("description"))
		h := w.table("header", "")
		for name, header := range r.get("headers").all() {
			header = d.resolve(header)
			h.row(name, "", cmp.Or(header.get("schema"), header), header.is("required"), header)
		}
		if h.rows > 0 {
			h.write("")
		}
		w.content(r.get("content"))
		if r.get("schema") != nil { // Swagger
			w.schema(r.get("schema"))
		}
		for media, e := range r.get("examples").all() {
			w.example(media, e)
		}
	}
	return w.done()
}

// auth writes which ways to authenticate an operation accepts.
func (w *apiPage) auth(op *apiOperation) {
	required := op.get("security")
	if required == nil {
		required = w.d.root.get("security")
	}
	var ways []string
	for _, r := range required.list() {
		var all []string
		for name, scopes := range r.all() {
			s := "`" + short(name, maxAPIName) + "`"
			for i, scope := range scopes.list() {
				s += map[bool]string{true: " with ", false: ", "}[i == 0] + "`" + short(scope.str(), maxAPIName) + "`"
			}
			all = append(all, s)
		}
		ways = append(ways, cmp.Or(strings.Join(all, " and "), "none"))
	}
	if len(ways) > 0 {
		w.text(fmt.Sprintf("[Authentication](%s#authentication): %s", relative(w.path, "index.md"), cut(strings.Join(ways, ", or "), maxAPICell)))
	}
}

// content writes the media types of a body.
func (w *apiPage) content(content *tree) {
	for media, m := range content.all() {
		if w.full() {
			return
		}
		w.text("`" + short(media, maxAPIName) + "`")
		w.schema(m.get("schema"))
		if e := m.get("example"); e != nil {
			w.example("", e)
		}
		for name, e := range m.get("examples").all() {
			e = w.d.resolve(e)
			w.example(cmp.Or(e.str("summary"), name), e.get("value"))
		}
	}
}

// schema writes a schema: its type, and a table of its fields. Schemas that it refers to have
// pages of their own.
func (w *apiPage) schema(s *tree) {
	if s == nil || w.full() {
		return
	}
	w.text("Type: " + w.typeOf(s))
	if refOf(s) != "" {
		return // the type is a link to the page of the schema
	}
	w.constraints(s)
	t := w.table("field", "")
	t.fields("", s, 0)
	if t.rows > 0 {
		t.write("")
	}
	if s.str("discriminator", "propertyName") != "" {
		w.text("The field `" + short(s.str("discriminator", "propertyName"), maxAPIName) + "` says which type an object has.")
	}
	if e := s.get("example"); e != nil {
		w.example("", e)
	}
	for _, e := range s.list("examples") {
		w.example("", e)
	}
}

func (w *apiPage) constraints(s *tree) {
	if c := constraints(s); c != "" {
		w.text(c)
	}
}

// schema returns the page of a schema.
func (d *api) schema(s *apiSchema) []byte {
	w := d.page(s.path, s.name, s.pointer)
	w.deprecated(s.tree)
	w.text(s.str("title"))
	w.text(s.str("description"))
	w.schema(s.tree)
	return w.done()
}

// example writes an example as a block of code.
func (w *apiPage) example(name string, v *tree) {
	if v == nil || w.full() {
		return
	}
	var text string
	language := ""
	if v.fields == nil && v.items == nil {
		text = v.str() // such as an XML document
	} else {
		text, language = string(v.appendJSON(nil, "", maxAPIExample)), "json"
	}
	if text = cut(text, maxAPIExample); strings.TrimSpace(text) == "" {
		return
	}
	w.text(strings.TrimSuffix("Example: "+short(name, maxAPIName), ": ") + ":")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(w, "%s%s\n%s\n%s\n\n", fence, language, strings.TrimRight(text, "\n"), fence)
}

// link returns a link to the page of a schema.
func (w *apiPage) link(s *apiSchema) string {
	return "[" + strings.NewReplacer("[", "\\[", "]", "\\]", "|", "\\|").Replace(short(s.name, maxAPIName)) + "](" + relative(w.path, s.path) + ")"
}
