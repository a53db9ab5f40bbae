// Package auth says who a caller is and what they may do: the [Principal] that
// a bearer token proves, the [Verifier] that proves it, the form of every
// [Secret], what clients are granted, who may become a user, and the HTTP headers
// of RFC 6750 in which tokens come and refusals go.
//
// It promises that a token is read from the Authorization header alone, that
// every kind of bad token looks the same to who does not hold a good one, and
// that a [Secret] cannot be printed or logged by accident. It stores nothing;
// auth/store does. A Principal is valid for the one request that it was made
// for: whoever keeps one past it works with rights that may be gone.
package auth
