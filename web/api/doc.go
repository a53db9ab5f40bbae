// Package api is the REST API: searching, reading and shell commands over the
// library, and the sources that it is made of, for programs that speak no MCP.
//
// A caller is who a bearer token proves, on every request; cookies count for
// nothing, and no answer lets a page of another site read it. What is reached is
// the library as that person sees it and never a space: paths are relative to the
// library, and one that leads out of it is refused before anything looks at it.
// Every answer is JSON, and so is every refusal:
//
//	{"error": {"code": "...", "message": "..."}, "message": "...", "statusCode": 400}
//
// The document at /api/openapi.json is written by hand, and the tests hold every
// request and answer to it.
package api
