// Package auth defines who a caller is and what they may do. It holds the [Principal] that
// a bearer token proves, the [Verifier] that checks the token, the form of every [Secret],
// the grants of clients, the allow list, and the HTTP headers of RFC 6750 that carry tokens
// and refusals.
//
// It reads a token only from the Authorization header. A caller without a valid token
// cannot distinguish between kinds of invalid tokens. A [Secret] cannot be printed or
// logged by accident. The package stores nothing; auth/store does. A Principal is valid for
// one request, because its rights may be revoked after that.
package auth
