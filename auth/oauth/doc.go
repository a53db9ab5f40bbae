// Package oauth implements the protocol of the built-in OAuth 2.1 authorization server:
// metadata (RFC 8414, RFC 9728), registration of clients (RFC 7591 and client ID metadata
// documents), authorization requests (RFC 6749 with RFC 7636, 8252, 8707 and 9207), the
// token endpoint and revocation (RFC 7009). The package keeps only a cache of fetched client
// documents. Codes, tokens and registered clients are in the [Store]. Other packages have the
// pages on which a person signs in and consents.
//
// [New] returns a [Server]. [Server.Handler] serves the endpoints for clients. The consent page
// calls [Server.Authorize], and then [Server.Approve] or [Server.Deny].
//
// The package never redirects anybody to an address that the client did not name
// beforehand. An unknown client or redirect causes a [PageError]. Every redirect is checked
// when it is registered, requested and used. All clients are public. What a client says about
// itself is not verified; misleading characters are removed from its name before the name is
// shown. A request's Host only selects one of the configured origins, and forwarded headers
// are ignored. The caller obtains consent: this package grants nothing without it.
package oauth
