// Package mcp serves the Model Context Protocol over streamable HTTP. One endpoint serves
// both eras of the protocol: legacy versions (2025-11-25 and older), which have sessions, and
// modern ones (2026-07-28 and newer), which have none.
//
// [New] returns an http.Handler. For each request the handler first checks Host and Origin,
// authenticates, limits rate, concurrency and size, reads the message strictly, finds its
// era and binds sessions to the grant that created them. It refuses a request beyond the
// caller's scopes with the HTTP status that makes clients ask for more. This package
// answers calls of tools, prompts, resources and skills from a [Toolset], and notifies
// clients of commits that [Server.Publish] reports. mcp-go does negotiation, discovery, lists
// and the rest of the protocol.
//
// No text of an internal error reaches a client. No client can see, cancel or continue
// requests of another user's client. A notification that is sent before a result also
// arrives before it. The memory that the package uses is limited.
package mcp
