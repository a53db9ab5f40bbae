//go:build !openapi

package api_test

import (
	"encoding/json"
	"net/http"
	"testing"
)

// described is the document that the server serves. What is asked and answered is
// held to it with -tags openapi.
type described struct{}

func describe(t *testing.T, document []byte) *described {
	t.Helper()
	if !json.Valid(document) {
		t.Fatal("the document is no JSON")
	}
	return &described{}
}

func (*described) judge(*testing.T, *http.Request, []byte, answer) {}
