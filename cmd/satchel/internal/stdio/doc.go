// Package stdio carries MCP between standard input and output and a Satchel
// server's streamable HTTP endpoint, for clients that only start commands
// (Claude Desktop refuses URLs on localhost).
//
// It passes JSON-RPC messages through as they are and adds what the HTTP
// transport wants: the key, the session, and the headers of both protocol eras
// (2025-11-25 with sessions, 2026-07-28 without). Every request gets exactly
// one answer: where the server cannot be reached it is an error that says so.
// Standard output carries protocol messages and nothing else.
package stdio
