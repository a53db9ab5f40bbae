package upstream

import (
	"cmp"
	"context"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// openAPI is the OpenAPI or Swagger document of an HTTP API. Each operation and each schema
// becomes a page.
type openAPI struct {
	URL string `json:"url"`
}

const (
	// maxOpenAPI limits the bytes of a document. The largest known documents have 12 MB.
	maxOpenAPI = 16 << 20
	// maxTags limits the tags of an operation.
	maxTags = 20
	// maxRefs bounds the length of a chain of references.
	maxRefs = 20
	// openAPIVersion begins each State. It must change when this package writes pages in another
	// way, so that the next sync writes all pages again.
	openAPIVersion = "1 "
)

var openAPIName = regexp.MustCompile(`^(openapi|swagger)\.(json|yaml|yml)$`)

func recognizeOpenAPI(u *url.URL) Upstream {
	if openAPIName.MatchString(path.Base(u.Path)) {
		return &openAPI{URL: u.String()}
	}
	return nil
}

func (o *openAPI) Validate() (err error) {
	o.URL, err = address(o.URL)
	return err
}

func (o *openAPI) Check(ctx context.Context, env *Env) (State, error) {
	s, err := documentState(ctx, env, o.URL, maxOpenAPI)
	if err != nil {
		return "", err
	}
	return openAPIVersion + s, nil
}

func (o *openAPI) Fetch(ctx context.Context, env *Env, sink Sink) (State, error) {
	a, err := document(ctx, env, o.URL, maxOpenAPI)
	if err != nil {
		return "", err
	}
	root, err := parseTree(a.content)
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "%s is not a JSON or YAML document that can be read.", o.URL).In("url")
	}
	if root.str("openapi") == "" && root.str("swagger") == "" {
		return "", fault.New(fault.Invalid, "%s is not an OpenAPI document. Enter the address of the JSON or YAML file.", o.URL).In("url")
	}
	d := newAPI(o.URL, root, sink)
	sink.Expect(1 + len(d.operations) + len(d.schemas))
	if err := give(ctx, env, sink, d.file("index.md", d.title(), ""), d.index()); err != nil {
		return "", err
	}
	for _, op := range d.operations {
		if err := give(ctx, env, sink, d.file(op.path, op.title(), op.pointer), d.operation(op)); err != nil {
			return "", err
		}
	}
	for _, s := range d.schemas {
		if err := give(ctx, env, sink, d.file(s.path, s.name, s.pointer), d.schema(s)); err != nil {
			return "", err
		}
	}
	return openAPIVersion + stateOf(a), nil
}

// api is an OpenAPI document with the paths of its pages.
type api struct {
	url        string
	root       *tree
	operations []*apiOperation
	schemas    []*apiSchema
	schemaAt   map[string]*apiSchema // by JSON pointer
}

// apiOperation is a method of a path, or a webhook.
type apiOperation struct {
	*tree
	method, route string
	shared        []*tree // the parameters that all operations of the path share
	pointer       string
	path          space.Path
}

type apiSchema struct {
	*tree
	name, pointer string
	path          space.Path
}

var apiMethods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}

// newAPI finds the operations and schemas of a document. Those that the source already has keep
// their paths.
func newAPI(address string, root *tree, sink Sink) *api {
	d := &api{url: address, root: root, schemaAt: map[string]*apiSchema{}}
	old, taken := oldFiles(sink)
	place := func(dir, name, pointer string) space.Path {
		at := address + "#" + pointer
		if p := old[at].Path; p != "" {
			return p
		}
		return freePath(taken, dir+"/"+cmp.Or(safeName(name), "page"), ".md", at)
	}
	for _, group := range []string{"paths", "webhooks"} {
		for route, item := range root.get(group).all() {
			item = d.resolve(item)
			for _, method := range apiMethods {
				op := item.get(method)
				if op == nil || op.fields == nil {
					continue
				}
				pointer := "/" + group + "/" + escapePointer(route) + "/" + method
				name := cmp.Or(op.str("operationId"), method+"-"+strings.Trim(route, "/"))
				d.operations = append(d.operations, &apiOperation{
					tree: op, method: strings.ToUpper(method), route: route, shared: item.list("parameters"), pointer: pointer,
					path: place(map[string]string{"paths": "operations", "webhooks": "webhooks"}[group], name, pointer),
				})
			}
		}
	}
	for _, group := range []string{"/components/schemas", "/definitions"} {
		for name, schema := range root.at(group).all() {
			s := &apiSchema{tree: schema, name: name, pointer: group + "/" + escapePointer(name)}
			s.path = place("schemas", name, s.pointer)
			d.schemas = append(d.schemas, s)
			d.schemaAt[s.pointer] = s
		}
	}
	return d
}

func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

func (d *api) file(p space.Path, title, pointer string) File {
	return File{Path: p, Title: title, URL: d.addressOf(pointer)}
}

// addressOf returns the address of a part of the document.
func (d *api) addressOf(pointer string) string {
	if pointer == "" {
		return d.url
	}
	return d.url + "#" + pointer
}

func (d *api) title() string { return cmp.Or(short(d.root.str("info", "title"), maxAPIName), "API") }

func (op *apiOperation) title() string {
	return cmp.Or(short(op.str("summary"), maxAPIName), short(op.str("operationId"), maxAPIName), op.method+" "+short(op.route, maxAPIName))
}

// refOf returns the pointer of a reference within the document, or "". References to other
// documents are not followed, because strangers must not choose what this server requests.
func refOf(t *tree) string {
	pointer, ok := strings.CutPrefix(t.str("$ref"), "#")
	if !ok {
		return ""
	}
	if plain, err := url.PathUnescape(pointer); err == nil {
		pointer = plain
	}
	return pointer
}

// resolve returns the value that a reference leads to, or t if t is not a reference. It returns
// nil if there is no such value.
func (d *api) resolve(t *tree) *tree {
	for range maxRefs {
		pointer := refOf(t)
		if pointer == "" {
			return t
		}
		t = d.root.at(pointer)
	}
	return nil // the chain of references is too long, or a cycle
}

// parameters returns the parameters of an operation, with those parameters of its path that the
// operation does not replace.
func (d *api) parameters(op *apiOperation) []*tree {
	var all []*tree
	have := map[string]bool{}
	for _, p := range slices.Concat(op.list("parameters"), op.shared) {
		p = d.resolve(p)
		if id := p.str("in") + " " + p.str("name"); p != nil && !have[id] {
			have[id] = true
			all = append(all, p)
		}
	}
	return all
}

// tags returns the tags in the order of the document, each with its operations. Operations
// without a tag come last.
func (d *api) tags() (names []string, of map[string][]*apiOperation) {
	of = map[string][]*apiOperation{}
	seen := map[string]bool{"": true}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, t := range d.root.list("tags") {
		add(t.str("name"))
	}
	for _, op := range d.operations {
		tags := op.list("tags")
		tags = tags[:min(len(tags), maxTags)] // operations can share one long list
		if len(tags) == 0 {
			tags = []*tree{nil}
		}
		for _, t := range tags {
			name := t.str()
			add(name)
			if n := len(of[name]); n == 0 || of[name][n-1] != op {
				of[name] = append(of[name], op)
			}
		}
	}
	return append(names, ""), of
}
