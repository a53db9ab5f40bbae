// Package mcp is Satchel's protocol edge: it serves the Model Context Protocol
// over streamable HTTP, in both of its eras on one endpoint: 2025-11-25 and
// older with sessions, 2026-07-28 without.
//
// [New] returns an http.Handler. Before anything else sees a request it checks
// Host and Origin, authenticates, limits rate, concurrency and size, reads the
// message strictly, decides its era, binds sessions to the grant that made
// them, and refuses what the caller's scopes do not allow with the HTTP status
// that makes clients ask for more. Calls of tools, prompts, resources and
// skills are answered here, from a [Toolset]; negotiation, discovery, lists
// and everything else that belongs to the protocol alone is mcp-go's.
//
// It promises that no text of an internal error reaches a client, that no
// client can see, cancel or continue what another user's client does, that a
// notification sent before a result arrives before it, and that what it keeps
// in memory is bounded.
package mcp
