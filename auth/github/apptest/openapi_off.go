//go:build !openapi

package apptest

import "net/http"

// checker finds nothing: kin-openapi's own modules are not in go.mod yet, without
// which it does not compile. The build tag openapi has the one that validates.
type checker struct{}

func newChecker() (checker, error) { return checker{}, nil }

func (checker) check(*http.Request, []byte, int, http.Header, []byte) []string { return nil }
