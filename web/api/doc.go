// Package api is the REST API for programs that don't use MCP: it searches, reads and runs
// shell commands over the library, and lists and syncs its sources.
//
// Every request needs a bearer token; cookies are ignored, and pages of other sites cannot
// read the answers. Requests reach only the library as the caller sees it, and never a
// space: paths are relative to the library, and paths that lead out of it are rejected
// first. Every answer is JSON, and so is every error:
//
//	{"error": {"code": "...", "message": "..."}, "message": "...", "statusCode": 400}
//
// The document at /api/openapi.json is generated from the routes and their types. The tests
// check every request and answer against it.
package api
