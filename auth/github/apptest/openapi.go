package apptest

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

//go:embed openapi.json.gz
var description []byte

const origin = "https://api.github.com"

// checker finds differences between a request with its answer and GitHub's OpenAPI description.
type checker struct {
	router  routers.Router
	schemas openapi3.Schemas
}

// loadChecker returns the only checker of the process. Reading the description takes half
// of the time of a server's start, and nothing changes the checker.
var loadChecker = sync.OnceValues(func() (checker, error) {
	z, err := gzip.NewReader(bytes.NewReader(description))
	if err != nil {
		return checker{}, fmt.Errorf("openapi.json.gz: %w", err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return checker{}, fmt.Errorf("openapi.json.gz: %w", err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return checker{}, fmt.Errorf("openapi.json.gz: %w", err)
	}
	doc.Servers = openapi3.Servers{{URL: origin}}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		return checker{}, fmt.Errorf("openapi.json.gz: %w", err)
	}
	return checker{router, doc.Components.Schemas}, nil
})

// check returns the differences between a request with its answer and GitHub's description. The
// request's path must not begin with /api/v3.
func (c checker) check(r *http.Request, body []byte, status int, header http.Header, answer []byte) []string {
	u, err := url.Parse(origin + r.URL.RequestURI())
	if err != nil {
		return []string{err.Error()}
	}
	in := r.Clone(context.Background())
	in.URL, in.Host, in.Body = u, u.Host, io.NopCloser(bytes.NewReader(body))
	route, params, err := c.router.FindRoute(in)
	if err != nil {
		return []string{fmt.Sprintf("GitHub's description has no such operation: %v", err)}
	}
	o := &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, RejectWhenRequestBodyNotSpecified: true}
	request := &openapi3filter.RequestValidationInput{Request: in, PathParams: params, Route: route, Options: o}
	var found []string
	// GitHub itself answers malformed requests with 404 or 401, so a request with such an answer
	// need not be valid.
	if status != http.StatusNotFound && status != http.StatusUnauthorized {
		if err := openapi3filter.ValidateRequest(in.Context(), request); err != nil {
			found = append(found, "request: "+err.Error())
		}
	}
	// The description omits some of the errors that every operation has. Their body has the
	// schema basic-error.
	if status >= http.StatusBadRequest && route.Operation.Responses.Status(status) == nil {
		if err := c.visitError(answer); err != nil {
			found = append(found, "answer: "+err.Error())
		}
		return found
	}
	response := &openapi3filter.ResponseValidationInput{RequestValidationInput: request, Status: status, Header: header, Options: o}
	response.SetBodyBytes(answer)
	if err := openapi3filter.ValidateResponse(in.Context(), response); err != nil {
		found = append(found, "answer: "+err.Error())
	}
	return found
}

func (c checker) visitError(answer []byte) error {
	var v map[string]any
	if err := json.Unmarshal(answer, &v); err != nil {
		return fmt.Errorf("basic-error: %w", err)
	}
	if _, ok := v["message"].(string); !ok {
		return errors.New("basic-error: no message")
	}
	return c.schemas["basic-error"].Value.VisitJSON(v)
}

// complete adds to v the properties that the schema called name requires, with simple values.
func (c checker) complete(name string, v object) object {
	schema := c.schemas[name].Value
	for _, required := range schema.Required {
		if _, has := v[required]; !has {
			v[required] = plain(schema.Properties[required].Value)
		}
	}
	return v
}

func plain(s *openapi3.Schema) any {
	switch {
	case s.Nullable:
		return nil
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type.Is("boolean"):
		return false
	case s.Type.Is("integer"), s.Type.Is("number"):
		return 0
	case s.Type.Is("array"):
		return []any{}
	case s.Type.Is("object"):
		return object{}
	case s.Format == "uri":
		return origin
	case s.Format == "date-time":
		return "2020-01-01T00:00:00Z"
	}
	return ""
}
