// Package authcheck looks at a deployment from outside, as the clients do that
// people connect, and says what each of them would meet and what to do about it.
// It asks what the specifications demand (MCP authorization, RFC 9728, 8414, 7591,
// 6749, 7636 and 9207) and what is known of each client's own ways.
//
// It promises to change nothing: it signs nobody in, and registers a client only
// where [Options] says so. It works for any server that speaks MCP over http, with
// an authorization server of its own or another issuer's. It goes wherever the
// metadata says, on private networks too: it is the operator's own command, to be
// run where they may see what it sees.
package authcheck
