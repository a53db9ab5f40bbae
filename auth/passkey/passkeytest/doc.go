// Package passkeytest is a browser with a software authenticator, for tests of
// what signs people in with passkeys: it makes keys and uses them as WebAuthn
// Level 3 says, from the options that a page would be given to the JSON that the
// page would send.
//
// It promises to refuse what a browser would (another host's relying party, a
// credential that is excluded, no key that fits), and to do otherwise exactly
// what a Change says. Only tests import it.
package passkeytest
