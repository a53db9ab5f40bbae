// Package passkeytest simulates a browser with a software authenticator, for tests of sign-ins
// with passkeys. [New] returns an [Authenticator]. It creates and uses keys as in WebAuthn Level
// 3, from the options that a page gets to the JSON that the page sends.
//
// The Authenticator refuses what a browser refuses: a relying party of another host, an excluded
// credential, and options that no key fits. It deviates only as a Change says. Only tests import
// this package.
package passkeytest
