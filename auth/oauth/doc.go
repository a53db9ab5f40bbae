// Package oauth is the protocol of the built-in OAuth 2.1 authorization server: metadata
// (RFC 8414, RFC 9728), registration of clients (RFC 7591 and client ID metadata
// documents), authorization requests (RFC 6749 with RFC 7636, 8252, 8707 and 9207), the
// token endpoint and revocation (RFC 7009). It stores only fetched documents. The [Store]
// stores codes, tokens and registered clients, and other packages contain the pages on which
// a person signs in and consents.
//
// It promises never to redirect anybody to an address that the client did not name
// beforehand: an unknown client or redirect is a [PageError], and every redirect is checked
// when it is registered, when it is asked for and when it is used. All clients are public;
// their descriptions of themselves are unproven, and characters that could deceive a reader
// are removed. No address comes from a request's Host or forwarded headers. The caller
// obtains consent: this package never grants anything without it.
package oauth
