// Package github signs people in with GitHub, or a GitHub Enterprise server, by
// its web application flow with PKCE.
//
// It promises that a [satchel/auth.ExternalIdentity] names its person by the number that
// GitHub never gives to another, that an address counts only where it is the
// primary one and GitHub verified it, that organisations count only where the
// person is an active member, and that the token by which GitHub was asked is
// kept nowhere and revoked after use. Every answer is bounded in size and time,
// and what GitHub sends as an error's text is logged and never shown.
package github
