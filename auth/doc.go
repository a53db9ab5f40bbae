// Package auth defines who a caller is and what they may do. [Authenticate] returns the
// [Principal] that makes a request. [ChallengeOf] returns the [Challenge] for a refused request
// (RFC 6750). The package also defines the [Verifier] that checks a bearer token, the form of
// every [Secret], the grants of clients, and the allow list.
//
// The package reads a token only from the Authorization header. A caller without a valid token
// cannot distinguish between kinds of invalid tokens. A [Secret] cannot be printed or logged by
// accident. The package stores nothing; auth/store does. A Principal is valid for one request,
// because its rights may be revoked after that.
package auth
