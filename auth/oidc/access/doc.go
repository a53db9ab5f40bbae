// Package access verifies access tokens (JWTs) of another issuer, for a server
// that is only the resource server: Auth0, Keycloak, Entra, Supabase and whoever
// publishes keys by OpenID Connect discovery or RFC 8414.
//
// It promises that nothing is accepted which the issuer did not sign for this
// resource and for a client: claims are read only once a key of the issuer, of
// the kind that the algorithm needs, has verified the signature, and a token
// that one of the rules of [Verifier.Verify] does not cover is refused. To who
// holds no signed token every refusal looks the same.
//
// It promises also that the issuer may be away: the server starts without it, its
// keys are used for a bounded time in which they cannot be fetched again, and
// after that callers get fault.Unavailable, never access. What callers send
// cannot make the server hammer the issuer, or fetch anything else.
//
// Signatures are golang-jwt's, keys are parsed by go-jose. The key set is not
// go-oidc's RemoteKeySet: that one keeps keys for ever, fetches once for each
// token with an unknown key, reads answers of any length, ignores key_ops, and is
// found by one discovery location alone, where RFC 8414 has another.
// golang-jwt's parser is not used either, since it decodes claims before
// it verifies them, and takes a member that occurs twice.
package access
