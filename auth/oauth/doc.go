// Package oauth implements the protocol of the built-in OAuth 2.1 authorization server:
// metadata (RFC 8414, RFC 9728), registration of clients (RFC 7591 and client ID metadata
// documents), authorization requests (RFC 6749 with RFC 7636, 8252, 8707 and 9207), the
// token endpoint and revocation (RFC 7009). It stores only fetched documents. The [Store]
// stores codes, tokens and registered clients. Other packages have the pages on which a
// person signs in and consents.
//
// The package never redirects anybody to an address that the client did not name
// beforehand. An unknown client or redirect is a [PageError]. Every redirect is checked
// when it is registered, requested and used. All clients are public, and their descriptions
// of themselves are unproven. Characters that could deceive a reader are removed. No
// address comes from a request's Host or forwarded headers. The caller obtains consent:
// this package grants nothing without it.
package oauth
