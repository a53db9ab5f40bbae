// Package egress is how the server reaches hosts that users name: git remotes
// and web sources. It refuses addresses that are not the public internet's, so
// that a user's URL cannot reach the server itself, its network or a cloud's
// metadata.
//
// It promises that an address is judged when it is dialled, so a name that
// resolves to something else the second time gains nothing; that IPv6 forms of
// an IPv4 address count as that address; that the machine's own addresses are
// refused, public or not; and that its CONNECT proxy, for programs such as git
// that dial by themselves, serves only who has its credential.
package egress
