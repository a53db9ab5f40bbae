// Package egress connects the server to hosts that users name: git remotes and web sources.
// It refuses addresses outside the public internet, so that a user's URL cannot reach the
// server itself, its network or a cloud's metadata.
//
// An address is checked when it is dialled, so a name that later resolves to another
// address gains nothing. IPv6 forms of an IPv4 address count as that address. The machine's
// own addresses are refused, even public ones. The CONNECT proxy, for programs such as git
// that dial by themselves, serves only callers with its credential.
package egress
