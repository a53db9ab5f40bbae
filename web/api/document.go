package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/service"
)

// document generates the OpenAPI document from the routes and the types of their
// requests and answers. origin is the server's address.
//
// Besides its json tag, a field can have three tags. The tag doc is its description. The tag api
// lists rules such as "required,minimum=0,maximum=$results". The tag each lists rules for the
// elements of a list or a map. A name after $ is a limit of the server. A field of an answer is
// required unless it has omitempty. A field of a request is required if the tag api says so. A map
// named Others holds fields that are only known when the answer is made.
func document(origin string, routes []route, l Limits) ([]byte, error) {
	g := generator{schemas: object{}, types: map[string]reflect.Type{}, limits: map[string]int{
		"results": l.Results, "paths": l.Paths, "searchPaths": min(l.Paths, maxSearchPaths),
		"commands": l.Commands, "commandBytes": l.CommandBytes, "session": maxSessionID,
		"facts": service.MaxFactsAtOnce, "edits": service.MaxEdits,
	}}
	paths := object{}
	for _, r := range routes {
		at, _ := paths[r.path].(object)
		if at == nil {
			at = object{}
			paths[r.path] = at
		}
		at[strings.ToLower(r.method)] = g.operation(r)
	}
	g.schema(reflect.TypeFor[errorView](), false)
	if g.err != nil {
		return nil, g.err
	}
	return json.MarshalIndent(object{
		"openapi": "3.0.3",
		"info": object{
			"title": "Satchel", "version": "1",
			"description": "The routes under /api/sandbox work on the library: all sources of this server that the owner of the token can read. Their paths are relative to the library. The other routes work on the sources, or on the space of the token.",
		},
		"servers": []object{{"url": origin}},
		"paths":   paths,
		"components": object{
			"securitySchemes": object{"bearer": object{
				"type": "http", "scheme": "bearer", "description": "An API key (account page), or an OAuth access token.",
			}},
			"responses": failures(),
			"schemas":   g.schemas,
		},
	}, "", "  ")
}

// object is a JSON object.
type object = map[string]any

// failure is an answer that many routes share.
type failure struct {
	name        string
	status      int
	description string
	header      string // the name of a header of the answer; "" for none
	always      bool   // the answer always has the header
	about       string // description of the header
}

func allFailures() []failure {
	return []failure{
		{name: "BadRequest", status: http.StatusBadRequest, description: "The request is invalid. Nothing was done."},
		{"Unauthorized", http.StatusUnauthorized, "The token is missing or invalid.", "WWW-Authenticate", true, "The challenge of RFC 6750, with resource_metadata of RFC 9728."},
		{"Forbidden", http.StatusForbidden, "The token lacks the scope, or the server does not accept this Host.", "WWW-Authenticate", false, ""},
		{name: "NotFound", status: http.StatusNotFound, description: "It does not exist for this caller."},
		{name: "Conflict", status: http.StatusConflict, description: "The request conflicts with the current state: something exists already, or has another version than the base. Nothing was changed."},
		{"MethodNotAllowed", http.StatusMethodNotAllowed, "The path does not accept this method.", "Allow", true, ""},
		{name: "RequestTimeout", status: http.StatusRequestTimeout, description: "The request did not arrive within server.body_timeout."},
		{name: "TooLarge", status: http.StatusRequestEntityTooLarge, description: "The request is over a limit."},
		{name: "UnsupportedMediaType", status: http.StatusUnsupportedMediaType, description: "The body does not have the media type that the route accepts, or is compressed."},
		{"TooManyRequests", http.StatusTooManyRequests, "Too many requests, or too many at a time.", "Retry-After", true, "Seconds."},
		{name: "InternalError", status: http.StatusInternalServerError, description: "The server failed. Its log has the details."},
		{"Unavailable", http.StatusServiceUnavailable, "A part of the server is unavailable, such as the sandbox.", "Retry-After", false, ""},
	}
}

func failures() object {
	out := object{}
	for _, f := range allFailures() {
		r := object{"description": f.description, "content": jsonOf(reference("Error"))}
		if f.header != "" {
			h := object{"schema": object{"type": "string"}}
			if f.always {
				h["required"] = true
			}
			if f.about != "" {
				h["description"] = f.about
			}
			r["headers"] = object{f.header: h}
		}
		out[f.name] = r
	}
	return out
}

// fails reports whether a route can answer with an error status.
func (r route) fails(status int) bool {
	switch status {
	case http.StatusBadRequest:
		return r.in != nil || r.ifMatch || r.query != nil || r.optional != nil
	case http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return r.in != nil || r.media != ""
	case http.StatusNotFound:
		return r.notFound
	case http.StatusConflict:
		return r.conflict
	case http.StatusUnauthorized, http.StatusServiceUnavailable:
		return r.scope != ""
	}
	return true
}

func jsonOf(schema object) object {
	return object{"application/json": object{"schema": schema}}
}

func reference(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// generator makes schemas from types. It keeps its first error.
type generator struct {
	schemas object
	types   map[string]reflect.Type // type of each schema, by its name
	limits  map[string]int
	err     error
}

func (g *generator) operation(r route) object {
	op := object{"operationId": r.id, "summary": r.summary, "security": []object{}}
	if r.detail != "" {
		op["description"] = r.detail
	}
	if r.scope != "" {
		op["security"], op["x-scope"] = []object{{"bearer": []string{}}}, r.scope
	}
	var params []object
	for part := range strings.SplitSeq(r.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			params = append(params, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "description": "The ID.", "schema": object{"type": "string"}})
		}
	}
	if r.ifMatch {
		params = append(params, object{"name": "If-Match", "in": "header", "description": "The etag that the current version must have. Default: any version.", "schema": object{"type": "string"}})
	}
	for _, name := range slices.Sorted(maps.Keys(r.query)) {
		params = append(params, object{"name": name, "in": "query", "required": true, "description": r.query[name], "schema": object{"type": "string"}})
	}
	for _, name := range slices.Sorted(maps.Keys(r.optional)) {
		params = append(params, object{"name": name, "in": "query", "description": r.optional[name], "schema": object{"type": "string"}})
	}
	if params != nil {
		op["parameters"] = params
	}
	if r.media != "" {
		op["requestBody"] = object{"required": true, "content": object{r.media: object{"schema": object{"type": "string", "format": "binary"}}}}
	}
	if r.in != nil {
		body := object{"schema": g.schema(r.in, true)}
		if r.example != "" {
			body["example"] = json.RawMessage(r.example)
		}
		op["requestBody"] = object{"required": !r.optionalBody, "content": object{"application/json": body}}
	}
	schema := object{"type": "object"}
	if r.out != nil {
		schema = g.schema(r.out, false)
	}
	responses := object{strconv.Itoa(r.status): object{"description": r.answer, "content": jsonOf(schema)}}
	for _, f := range allFailures() {
		if r.fails(f.status) {
			responses[strconv.Itoa(f.status)] = object{"$ref": "#/components/responses/" + f.name}
		}
	}
	op["responses"] = responses
	return op
}

// schema returns the schema of a type: a reference if the type is a struct with a name.
func (g *generator) schema(t reflect.Type, request bool) object {
	switch t.Kind() {
	case reflect.Pointer:
		return g.schema(t.Elem(), request)
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Slice:
		return object{"type": "array", "items": g.schema(t.Elem(), request)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": g.schema(t.Elem(), request)}
	case reflect.Interface:
		return object{} // any JSON
	case reflect.Struct:
		name := strings.TrimSuffix(strings.TrimSuffix(t.Name(), "View"), "Request")
		name = strings.ToUpper(name[:1]) + name[1:]
		if of := g.types[name]; of != nil && of != t {
			g.fail("%s and %s have the same schema name", of, t)
		} else if of == nil {
			s := object{"type": "object", "additionalProperties": false}
			g.schemas[name], g.types[name] = s, t // set first, because a field may have the type t
			properties, required := object{}, []string{}
			g.fields(t, request, properties, &required)
			s["properties"] = properties
			if len(required) > 0 {
				s["required"] = required
			}
			if f, ok := t.FieldByName("Others"); ok {
				s["additionalProperties"] = g.schema(f.Type.Elem(), request)
			}
		}
		return reference(name)
	}
	g.fail("a %s has no schema", t)
	return nil
}

// fields adds the fields of a struct, and those of embedded structs as its own.
func (g *generator) fields(t reflect.Type, request bool, properties object, required *[]string) {
	for f := range t.Fields() {
		if f.Anonymous {
			g.fields(f.Type, request, properties, required)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		s := g.schema(f.Type, request)
		if doc := f.Tag.Get("doc"); doc != "" {
			if s["$ref"] != nil { // OpenAPI 3.0 ignores a description beside $ref
				s = object{"allOf": []object{s}}
			}
			s["description"] = doc
		}
		must := g.rules(s, f.Tag.Get("api"))
		for _, inner := range []string{"items", "additionalProperties"} {
			if of, ok := s[inner].(object); ok {
				g.rules(of, f.Tag.Get("each"))
			}
		}
		if must || !request && options == "" {
			*required = append(*required, name)
		}
		properties[name] = s
	}
}

// rules adds rules to a schema and reports whether "required" is one of them.
func (g *generator) rules(s object, list string) (required bool) {
	for rule := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(rule, "=")
		switch name {
		case "":
		case "required":
			required = true
		case "enum":
			s[name] = strings.Split(value, "|")
		case "format", "pattern":
			s[name] = value
		case "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems":
			n, err := strconv.Atoi(value)
			if limit, ok := g.limits[strings.TrimPrefix(value, "$")]; ok {
				n, err = limit, nil
			}
			if err != nil {
				g.fail("the rule %q has no number", rule)
			}
			s[name] = n
		default:
			g.fail("there is no rule %q", rule)
		}
	}
	return required
}

func (g *generator) fail(format string, args ...any) {
	if g.err == nil {
		g.err = fault.New(fault.Internal, "The OpenAPI document: "+format+".", args...)
	}
}
