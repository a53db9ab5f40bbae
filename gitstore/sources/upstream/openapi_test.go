package upstream_test

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/frontmatter"
)

const petStore = `
openapi: 3.0.3
info: {title: Pet store, version: "1.2", description: All about pets.}
servers: [{url: "https://pets.example/v1"}]
tags: [{name: pets, description: What people keep.}]
security: [{token: []}]
paths:
  /pets/{id}:
    parameters: [{$ref: "#/components/parameters/ID"}]
    get:
      operationId: getPet
      tags: [pets]
      summary: Get a pet
      parameters:
        - {name: fields, in: query, description: "Fields | to return", schema: {type: array, items: {type: string, enum: [name, age]}}}
      responses:
        "200":
          description: The pet.
          content:
            application/json: {schema: {$ref: "#/components/schemas/Pet"}, example: {name: Rex, age: 3}}
        default: {$ref: "#/components/responses/Error"}
    post:
      deprecated: true
      security: [{}, {token: [], oauth: [write]}]
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [name]
              properties:
                name: {type: string, minLength: 1, default: Rex}
                home: {type: object, properties: {city: {type: string, nullable: true}}}
                owner: {oneOf: [{$ref: "#/components/schemas/Person"}, {type: integer, format: int64}]}
      responses: {}
components:
  securitySchemes: {token: {type: http, scheme: bearer, description: A token of the page Settings.}}
  parameters: {ID: {name: id, in: path, required: true, schema: {type: string}}}
  responses: {Error: {description: It failed., content: {text/plain: {schema: {type: string}}}}}
  schemas:
    Pet:
      allOf:
        - {$ref: "#/components/schemas/Animal"}
        - {type: object, properties: {parent: {$ref: "#/components/schemas/Pet"}, tags: {type: array, items: {type: object, properties: {name: {type: string}}}}}}
    Animal: {type: object, additionalProperties: {type: integer}}
    Person: {type: [object, "null"], description: Who keeps a pet.}
    Elsewhere: {$ref: "other.yaml#/Thing"}
    Loop: {$ref: "#/components/schemas/Loop"}
`

// Each operation and each schema has a page with what a caller must know, and links lead to other pages.
func TestOpenAPIPages(t *testing.T) {
	body := petStore
	env, u, address := newDocument(t, "openapi", "", &body)
	s := &sink{}
	state := sync(t, env, u, s)
	for path, parts := range map[string][]string{
		"index.md": {"title: \"Pet store\"\n", "Version 1.2", "All about pets.", "`https://pets.example/v1`", "## pets\n\nWhat people keep.",
			"- [GET /pets/{id}](operations/getPet.md): Get a pet\n", "- [POST /pets/{id}](operations/post-pets--id.md): POST /pets/{id} (deprecated)\n",
			"## Authentication\n\n- `token`: HTTP bearer. A token of the page Settings.", "- [Pet](schemas/Pet.md)\n"},
		"operations/getPet.md": {"url: \"" + address + "#/paths/~1pets~1{id}/get\"\n", "# Get a pet\n\n`GET /pets/{id}`", "[Authentication](../index.md#authentication): `token`",
			"| `fields` | query | array of string | no | Fields \\| to return Items are one of `\"name\"`, `\"age\"`. |\n", "| `id` | path | string | yes |",
			"### 200\n\nThe pet.\n\n`application/json`\n\nType: [Pet](../schemas/Pet.md)\n", "```json\n{\n  \"name\": \"Rex\",\n  \"age\": 3\n}\n```", "### default\n\nIt failed."},
		"operations/post-pets--id.md": {"**Deprecated.**", ": none, or `token` and `oauth` with `write`", "## Request body\n\nRequired.",
			"| `name` | string | yes | Default `\"Rex\"`. Minimum length `1`. |", "| `home.city` | string or null | no |",
			"| `owner` | [Person](../schemas/Person.md) or integer (int64) | no |"},
		"schemas/Pet.md":       {"Type: [Animal](Animal.md) and object\n", "| `parent` | [Pet](Pet.md) | no |", "| `tags` | array of object | no |", "| `tags[].name` | string | no |"},
		"schemas/Animal.md":    {"Type: object with values of type integer"},
		"schemas/Person.md":    {"Who keeps a pet.\n\nType: object or null"},
		"schemas/Elsewhere.md": {"`other.yaml#/Thing`"},
		"schemas/Loop.md":      {"[Loop](Loop.md)"},
	} {
		for _, part := range parts {
			if !strings.Contains(s.content[path], part) {
				t.Errorf("%s has no %q:\n%s", path, part, s.content[path])
			}
		}
	}
	if len(s.files) != 8 || s.expected != 8 {
		t.Errorf("the pages are %q, %d expected", s.paths(), s.expected)
	}
	checkLinks(t, s)

	body = strings.Replace(petStore, "Get a pet", "Fetch a pet", 1)
	if now, err := u.Check(t.Context(), env); err != nil || now == state {
		t.Errorf("check finds %q, %v", now, err)
	}
	if sync(t, env, u, s); s.put != 2 || s.kept != 6 {
		t.Errorf("%d new, %d kept", s.put, s.kept)
	}
}

// Swagger 2 has other places for the same things.
func TestOpenAPIReadsSwagger(t *testing.T) {
	body := `{"swagger": "2.0", "info": {"title": "Old"}, "host": "old.example", "basePath": "/v1", "paths": {"/a": {"post": {"operationId": "a",
		"parameters": [{"name": "q", "in": "query", "type": "integer"}, {"name": "b", "in": "body", "schema": {"$ref": "#/definitions/B"}}],
		"responses": {"200": {"description": "Fine.", "schema": {"$ref": "#/definitions/B"}, "examples": {"application/json": {"n": 1}}}}}}},
		"definitions": {"B": {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "string"}}}}}`
	env, u, _ := newDocument(t, "openapi", "", &body)
	s := &sink{}
	sync(t, env, u, s)
	for _, part := range []string{"| `q` | query | integer | no |", "## Request body\n\nType: [B](../schemas/B.md)", "### 200\n\nFine.\n\nType: [B](../schemas/B.md)", "\"n\": 1"} {
		if !strings.Contains(s.content["operations/a.md"], part) {
			t.Errorf("no %q in\n%s", part, s.content["operations/a.md"])
		}
	}
	if b := s.content["schemas/B.md"]; strings.Index(b, "`z`") > strings.Index(b, "`a`") {
		t.Errorf("the order of the document is lost:\n%s", b)
	}
	if !strings.Contains(s.content["index.md"], "`https://old.example/v1`") {
		t.Error(s.content["index.md"])
	}
}

// The document of Satchel's own API is a real one.
func TestOpenAPIOfSatchel(t *testing.T) {
	b, err := os.ReadFile("../../../web/api/testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	body := string(b)
	env, u, _ := newDocument(t, "openapi", "", &body)
	s := &sink{}
	sync(t, env, u, s)
	operations := strings.Count(body, `"operationId"`)
	found := 0
	for p := range s.content {
		if strings.HasPrefix(p, "operations/") {
			found++
		}
	}
	if operations == 0 || found != operations || len(s.skipped) > 0 {
		t.Errorf("%d of %d operations, skipped %v", found, operations, s.skipped)
	}
	for p, content := range s.content {
		if d, err := frontmatter.Parse([]byte(content)); err != nil || d.String("title") == "" {
			t.Errorf("%s has no title: %v", p, err)
		}
	}
	checkLinks(t, s)
}

// Hostile documents end with an error, or with bounded pages.
func TestOpenAPIIsBounded(t *testing.T) {
	many := func(n int, part string) string { return strings.TrimSuffix(strings.Repeat(part+",", n), ",") }
	bomb := "openapi: 3.0.0\nx0: &x0 [1,1,1,1,1,1,1,1,1,1]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("x%d: &x%d [%s]\n", i+1, i+1, many(10, fmt.Sprintf("*x%d", i)))
	}
	var fields []string
	for i := range 5000 {
		fields = append(fields, fmt.Sprintf(`"f%d": {"description": "%s"}`, i, strings.Repeat("word ", 500)))
	}
	wide := `{"openapi": "3.0.0", "paths": {"/a": {"get": {"responses": {"200": {"content": {"a/b": {"schema": {"properties": {` + strings.Join(fields, ",") + `}}}}}}}}}}`
	for name, c := range map[string]struct {
		body string
		want fault.Code
	}{
		"aliases":        {bomb, fault.Invalid},
		"deep JSON":      {`{"openapi": ` + strings.Repeat(`[`, 1e6), fault.Invalid},
		"deep YAML":      {"openapi: " + strings.Repeat("[", 1e5), fault.Invalid},
		"too many":       {`{"openapi": "3.0.0", "x": [` + many(1<<20+1, "1") + `]}`, fault.Invalid},
		"not an API":     {`{"a": 1}`, fault.Invalid},
		"text":           {"hello", fault.Invalid},
		"empty":          {"", fault.Invalid},
		"half":           {`{"openapi": "3.0.0", "paths": {`, fault.Invalid},
		"wide":           {wide, ""},
		"long type":      {`{"openapi": "3.0.0", "components": {"schemas": {"A": {"oneOf": [` + many(50000, `{"$ref": "#/components/schemas/A"}`) + `]}}}}`, ""},
		"a long chain":   {`{"openapi": "3.0.0", "components": {"schemas": {"A": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {}}}}}}}}}}}}`, ""},
		"strange values": {`{"openapi": 3, "info": [], "tags": {"a": 1}, "paths": {"/a": [1], "/b": {"get": 5}, "/c": {"get": {"parameters": [null, 7, {}], "responses": [], "requestBody": {"$ref": "#/paths/~1c/get/requestBody"}}}}, "components": {"schemas": {"": null, "../../x": 4}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			env, u, _ := newDocument(t, "openapi", "", &c.body)
			s := &sink{}
			s.next()
			_, err := u.Fetch(t.Context(), env, s)
			if err != nil && fault.CodeOf(err) != c.want || err == nil && c.want != "" {
				t.Fatalf("%v, want %q", err, c.want)
			}
			for p, content := range s.content {
				if len(content) > 300<<10 {
					t.Errorf("%s has %d bytes", p, len(content))
				}
			}
		})
	}
}

var markdownLink = regexp.MustCompile(`\]\(([^)#]*\.md)(#[^)]*)?\)`)

// checkLinks checks that links between pages lead to pages.
func checkLinks(t *testing.T, s *sink) {
	t.Helper()
	count := 0
	for from, content := range s.content {
		for _, m := range markdownLink.FindAllStringSubmatch(content, -1) {
			count++
			if to := joined(from, m[1]); s.content[to] == "" {
				t.Errorf("%s links to %s, which does not exist", from, m[1])
			}
		}
	}
	if count == 0 {
		t.Error("no page has a link")
	}
}

func joined(from, link string) string {
	plain, err := url.PathUnescape(link)
	if err != nil {
		return link
	}
	return path.Join(path.Dir(from), plain)
}

// Many operations can share one long list of tags.
func TestOpenAPITagsAreBounded(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(`{"openapi": "3.1.0", "x": {"get": {"tags": [`)
	for i := range 1000 {
		fmt.Fprintf(&doc, `"t%d",`, i)
	}
	doc.WriteString(`"last"]}}, "paths": {"/a": {"$ref": "#/x"}, "/b": {"$ref": "#/x"}}}`)
	body := doc.String()
	env, u, _ := newDocument(t, "openapi", "", &body)
	s := &sink{}
	sync(t, env, u, s)
	if n := strings.Count(string(s.content["index.md"]), "\n## t"); n != 20 {
		t.Errorf("the index has %d tags", n)
	}
}
