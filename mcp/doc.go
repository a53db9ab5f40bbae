// Package mcp is Satchel's protocol edge: it serves the Model Context Protocol
// over streamable HTTP, in both of its eras on one endpoint: 2025-11-25 and
// older with sessions, 2026-07-28 without.
//
// [New] returns an http.Handler. Before anything else sees a request it checks Host and
// Origin, authenticates, limits rate, concurrency and size, reads the message strictly,
// decides its era, binds sessions to the grant that made them, and refuses what the
// caller's scopes do not allow with the HTTP status that makes clients ask for more. This
// package answers calls of tools, prompts, resources and skills, from a [Toolset]; mcp-go
// does negotiation, discovery, lists and everything else of the protocol.
//
// No text of an internal error reaches a client. No client can see, cancel or continue
// requests of another user's client. A notification that is sent before a result arrives
// before it. The memory that the package uses is bounded.
package mcp
