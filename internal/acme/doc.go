// Package acme keeps a TLS certificate for the one name under which the server is
// reached from the internet, from an authority such as Let's Encrypt, over ACME
// (RFC 8555).
//
// It promises to ask the authority only when the server starts and when a third of a
// certificate's life is left, never because somebody connects, under this name or
// another. No failure is fatal: it is logged with its remedy, and tried again after
// growing pauses or when the authority says. A certificate outlives the server's restart on disk,
// where only the server's own user can read it.
//
// It speaks the protocol through golang.org/x/crypto/acme. The autocert package
// above it does not fit: it asks the authority during handshakes, every minute while
// that fails, and so uses up the authority's limit of failed attempts; it does not
// return the reasons of failures; and nothing can stop its timers.
package acme
