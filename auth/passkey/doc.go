// Package passkey signs people in with passkeys (WebAuthn Level 3): a key pair
// per person and server that their device, or their password manager, keeps and
// uses only at this server's origin and once it has verified the person.
//
// It promises that a passkey counts only where its response answers this
// server's fresh challenge of that ceremony, at exactly this server's origin and
// in no frame of another, with the person present and verified, signed by the
// key that was registered for that very person, and by no copy of it that its
// counter gives away. It keeps nothing: the caller keeps a ceremony's flow for
// one use, and the credentials.
package passkey
