// Package server connects the parts of Satchel and runs them. It opens the data directory,
// connects the stores, the index, the sandboxes, the tools and the MCP endpoint through
// small adapters, serves requests, and shuts down in order. It makes no decision that a
// part could make.
//
// OpenServer and Server.Serve run a server. OpenCore opens the data directory for an
// administrative command.
package server
