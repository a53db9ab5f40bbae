// Package egress connects the server to hosts that users name: git remotes and web sources. It
// refuses addresses outside the public internet. So a user's URL cannot reach the server
// itself, its network or a cloud's metadata.
//
// An address is checked when it is dialled, so an attacker gains nothing by changing the address
// of a name later. IPv6 forms of an IPv4 address count as that address. The machine's own
// addresses are refused, even public ones. Programs that dial by themselves, such as git, use the
// CONNECT proxy, which only serves callers with its credential.
//
// Call NewProxy for requests to hosts that users name, and NewClient for other requests of the
// server. Check checks one address.
package egress
