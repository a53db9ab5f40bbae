// Package authcheck checks a deployment from outside, like the clients that people connect.
// [Check] reports the problems of each client and how to fix them. It checks the requirements of
// the specifications (MCP authorization, RFC 9728, 8414, 7591, 6749, 7636 and 9207) and the
// known behaviour of each client.
//
// It changes nothing: it signs nobody in, and registers a client only if [Options] says so. It
// works with any server that speaks MCP over HTTP, with its own authorization server or another
// issuer. It follows metadata to private networks too, because the operator runs it and may see
// what is there.
package authcheck
