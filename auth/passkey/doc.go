// Package passkey signs people in with passkeys (WebAuthn Level 3). A passkey is a key pair
// for one person and one server. The person's device or password manager keeps the key
// pair. It uses the key pair only at this server's origin, and only after it has verified
// the person.
//
// [New] returns a [Service]. Its methods BeginRegistration and FinishRegistration create a
// passkey, and BeginSignIn and FinishSignIn check one.
//
// A passkey counts only under these conditions: the response answers this server's fresh
// challenge of the same ceremony, at exactly this server's origin, and not in a frame of
// another origin. The person is present and verified. The key that was registered for this
// person signed the response. The counter does not reveal a copy of the key. The package
// stores nothing: the caller keeps the flow of a ceremony for one use, and stores the
// credentials.
package passkey
