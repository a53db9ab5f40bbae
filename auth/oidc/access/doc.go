// Package access verifies the access tokens (JWTs) of an external issuer, for a
// server that is only a resource server. It works with Auth0, Keycloak, Entra,
// Supabase and any other issuer that publishes its keys through OpenID Connect
// discovery or RFC 8414.
//
// The package accepts only tokens that the issuer signed for this resource and for a
// client. It reads claims only after verifying the signature with one of the issuer's
// keys, of the type that the algorithm needs, and rejects a token that breaks any rule
// of [Verifier.Verify]. A caller without a signed token cannot learn why it was
// rejected.
//
// The issuer may be unreachable. The server starts without it. If the keys cannot be
// fetched again, the last ones are used for a limited time; after that, callers get
// fault.Unavailable and never access. No token can make the server flood the issuer
// with requests, or fetch any other URL.
//
// golang-jwt verifies the signatures and go-jose parses the keys. The package does not
// use go-oidc's RemoteKeySet, which keeps keys forever, fetches once for each token
// with an unknown key, reads responses of any length, ignores key_ops, and supports
// only OpenID's discovery URL and not that of RFC 8414. It does not use golang-jwt's
// parser either, which decodes claims before verifying them and accepts duplicate
// members.
package access
