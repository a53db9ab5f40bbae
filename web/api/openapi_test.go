package api_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// described is the document that the server serves.
type described struct {
	paths  *openapi3.Paths
	router routers.Router
}

func describe(t *testing.T, document []byte) *described {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatalf("the document is not valid: %v", err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return &described{doc.Paths, router}
}

// fileContent is the body of a request that is a file.
const fileContent = "the content of a file"

// request is a valid request.
type request struct {
	method, path string
	body         any // nil for none
	scope        string
}

// requests returns a valid request for each route that needs a token, with the body that
// the document has as an example.
func (d *described) requests(t *testing.T) []request {
	t.Helper()
	var list []request
	for path, item := range d.paths.Map() {
		for method, op := range item.Operations() {
			if len(*op.Security) == 0 {
				continue
			}
			r := request{method: method, path: parameter.ReplaceAllString(path, "nuxt"), scope: op.Extensions["x-scope"].(string)}
			if op.RequestBody != nil && op.RequestBody.Value.Required {
				body := op.RequestBody.Value.Content.Get("application/json")
				if body == nil {
					r.body = fileContent
				} else if r.body = body.Example; r.body == nil {
					t.Fatalf("%s %s needs an example of its body", method, path)
				}
			}
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b request) int {
		return cmp.Or(strings.Compare(a.path, b.path), -strings.Compare(a.method, b.method))
	})
	return list
}

// Every example is valid. The answer is the documented one or, if the caller has no such source or
// fact, says so.
func TestEveryRouteAnswersItsExample(t *testing.T) {
	w := newWorld(t)
	for _, q := range w.doc.requests(t) {
		t.Run(q.method+" "+q.path, func(t *testing.T) {
			a := w.ask(q.method, q.path, "ann", q.body, func(r *http.Request) {
				if q.body == fileContent {
					r.Header.Set("Content-Type", "application/octet-stream")
				}
			})
			known := !strings.Contains(q.path, "nuxt") && !strings.HasPrefix(q.path, "/api/sources")
			if a.StatusCode >= 300 && (known || a.StatusCode != http.StatusNotFound && a.StatusCode != http.StatusForbidden) {
				t.Errorf("%d: %s", a.StatusCode, a.body)
			}
		})
	}
}

var parameter = regexp.MustCompile(`\{[^}]*\}`)

// judge reports where an answer, or an accepted request, differs from the document.
func (d *described) judge(t *testing.T, r *http.Request, raw []byte, a answer) {
	t.Helper()
	again := r.Clone(context.Background())
	again.Body = io.NopCloser(bytes.NewReader(raw))
	route, params, err := d.router.FindRoute(again)
	if err != nil {
		if a.StatusCode != http.StatusNotFound && a.StatusCode != http.StatusMethodNotAllowed && a.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s is not in the document, and was answered with %d", r.Method, r.URL.Path, a.StatusCode)
		}
		return
	}
	in := &openapi3filter.RequestValidationInput{Request: again, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true}}
	bad := openapi3filter.ValidateRequest(context.Background(), in)
	if a.StatusCode < 300 && bad != nil {
		t.Errorf("%s %s was granted, and the document forbids it: %v", r.Method, r.URL.Path, bad)
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: a.StatusCode, Header: a.Header, Options: in.Options}
	out.SetBodyBytes(a.body)
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		t.Errorf("%s %s: %d is not what the document says: %v\n%s", r.Method, r.URL.Path, a.StatusCode, err, a.body)
	}
}
