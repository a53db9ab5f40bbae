// Package stdio connects standard input and output with the streamable HTTP endpoint of a
// Satchel server. It is for clients that only start commands (Claude Desktop refuses URLs on
// localhost). Call [Run].
//
// It passes JSON-RPC messages through unchanged, and adds what the HTTP transport requires: the
// key, the session, and the headers of both protocol versions (2025-11-25 with sessions,
// 2026-07-28 without). Every request that is not cancelled gets exactly one answer. If the server
// cannot be reached, the answer is an error that says so. If the client's message is longer than
// Options.MaxMessage, the answer is an error whose id is null. Standard output only contains
// protocol messages.
package stdio
