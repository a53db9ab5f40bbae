// Package oidc signs people in with an OpenID provider: the authorization code
// flow of OpenID Connect Core 1.0 section 3.1 with PKCE (RFC 7636), for the
// pages of this server. Access tokens that clients bring from an issuer are the
// concern of its sub package access.
//
// It promises that the issuer need not be up when the server starts, that every
// answer of the issuer is bounded in size and time, and that a
// [satchel/auth.ExternalIdentity] comes only of an ID token that the issuer signed with
// an asymmetric key for this client, for this very sign-in (state, nonce,
// verifier and redirect URI of Begin), now. An address counts only where the
// issuer says that it is verified. What the issuer or the browser sends as an
// error's text is logged and never shown.
package oidc
