// Package access verifies the access tokens (JWTs) of an external issuer, for a server that is
// only a resource server. [New] returns a [Verifier]. It works with Auth0, Keycloak, Entra,
// Supabase and any other issuer that publishes its keys through OpenID Connect discovery or RFC
// 8414.
//
// The package accepts only tokens that the issuer signed for this resource and for a
// client. It verifies the signature before it reads claims, and uses only a key of the issuer
// that fits the algorithm. It rejects a token that breaks any rule of [Verifier.Verify]. A
// caller without a signed token cannot learn the reason.
//
// The issuer may be unreachable, even when the server starts. If the package cannot fetch
// the keys again, it uses the last ones for a limited time. After that, callers get
// fault.Unavailable and never access. No token can make the server flood the issuer with
// requests, or fetch any other URL.
//
// golang-jwt verifies the signatures, and go-jose parses the keys. The package does not use
// go-oidc's RemoteKeySet, which keeps keys forever, fetches once for each token with an
// unknown key, reads responses of any length, ignores key_ops, and supports OpenID's
// discovery URL but not that of RFC 8414. It does not use golang-jwt's parser either, which
// decodes claims before it verifies them and accepts duplicate members.
package access
