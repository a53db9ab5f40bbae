// Package auth says who a caller is and what they may do: the [Principal] that
// a bearer token proves, the [Verifier] that proves it, the form of every
// [Secret], what clients are granted, the people who can become users, and the HTTP
// headers of RFC 6750 that carry tokens and rejections.
//
// It promises that a token is read only from the Authorization header, that a caller
// without a valid token cannot distinguish kinds of invalid tokens, and that a [Secret]
// cannot be printed or logged by accident. It stores nothing; auth/store does. A Principal
// is valid for one request: its rights may be revoked after that.
package auth
