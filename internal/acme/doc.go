// Package acme keeps a TLS certificate for the one name under which the server is
// reached from the internet, from an authority such as Let's Encrypt, over ACME
// (RFC 8555).
//
// It promises that the authority is asked when the server starts and when a third
// of a certificate's life is left, never because somebody connects: neither under
// the name, nor under made-up ones, nor while asking fails. Failures are never
// fatal: they are tried again after growing pauses or when the authority says, and
// logged with what to do. A certificate outlives the server's restart on disk,
// where only the server's own user can read it.
//
// It speaks the protocol through golang.org/x/crypto/acme. The autocert package
// above that is not used: it asks the authority from within handshakes, each
// minute while that fails, which uses up the authority's limit of failed attempts;
// it keeps the reasons of failures to itself; and its timers cannot be ended.
package acme
