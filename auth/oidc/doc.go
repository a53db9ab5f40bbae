// Package oidc signs people in with an OpenID provider. It implements the authorization code
// flow of OpenID Connect Core 1.0 section 3.1 with PKCE (RFC 7636) for the pages of this server.
// [New] returns a [Provider]. [Provider.Begin] starts a sign-in, and [Provider.Finish] returns
// the person. Package access verifies the access tokens of clients.
//
// The server can start while the issuer is down. Every answer of the issuer is limited in size
// and time. A [satchel/auth.ExternalIdentity] comes only from a current ID token that the
// issuer signed with an asymmetric key for this client and this sign-in (state, nonce,
// verifier and redirect URI of Begin). An address counts only if the issuer says that it is
// verified. The package logs error texts from the issuer or the browser, and never shows them.
package oidc
