// Package clientaddr finds the network address that a request comes from ([New],
// [Resolver.Of]), and the key under which the requests of an address are counted ([Key]).
//
// Clients cannot choose their own address: X-Forwarded-For is read only if the connection
// comes from a proxy that the operator configured. It is then read from the right, where
// that proxy wrote, up to the first address that is not such a proxy. Forwarded, X-Real-IP
// and other headers are never read.
package clientaddr
