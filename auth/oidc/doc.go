// Package oidc signs people in with an OpenID provider: the authorization code flow of
// OpenID Connect Core 1.0 section 3.1 with PKCE (RFC 7636), for the pages of this server.
// Package access verifies the access tokens that clients bring from an issuer.
//
// It promises that the issuer need not be up when the server starts, that every answer of
// the issuer is bounded in size and time, and that a [satchel/auth.ExternalIdentity] comes
// only from a current ID token that the issuer signed with an asymmetric key for this
// client and this sign-in (state, nonce, verifier and redirect URI of Begin). An address
// counts only if the issuer says that it is verified. Error texts from the issuer or the
// browser are logged and never shown.
package oidc
