// Package api is the REST API for programs that don't use MCP. Each file has the routes of
// one subject; allRoutes lists them all. Call [New], then serve [Server.Handler].
//
// docs/api.md says what a request can reach. Every request needs a bearer token, except for the
// OpenAPI document. Cookies are ignored, and pages of other sites cannot read the answers. Paths
// are relative to the library, and paths that lead out of it are rejected first. Every answer is
// JSON, and so is every error:
//
//	{"error": {"code": "...", "message": "..."}, "message": "...", "statusCode": 400}
//
// The document at /api/openapi.json is generated from the routes and their types. The tests
// check every request and answer against it.
package api
