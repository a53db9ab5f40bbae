// Package acme keeps a TLS certificate for the one public name of the server. It gets the
// certificate over ACME (RFC 8555) from an authority such as Let's Encrypt. Call [New], listen
// with [Manager.TLSConfig], then call [Manager.Start].
//
// The package sends requests to the authority only if there is no valid certificate, or if a
// third of the certificate's life is left (half of a life shorter than ten days). A
// connection to the server never causes a request, whatever name it asks for. No failed
// attempt is fatal: it is logged with its remedy. The next attempt follows after a growing
// pause, or later if the authority asks for that. The certificate is stored on disk, where only
// the server's own user can read it.
//
// The package uses the protocol of golang.org/x/crypto/acme. The autocert package does not
// fit: it sends requests during handshakes, and repeats them every minute after a failure,
// which uses up the authority's limit of failed attempts. It does not return the reasons of
// failures, and nothing can stop its timers.
package acme
