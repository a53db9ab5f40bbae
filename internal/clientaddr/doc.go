// Package clientaddr says which address of the network a request comes from, and
// under which key requests from there are counted.
//
// It promises that nobody chooses their own address: X-Forwarded-For is read only
// where the connection comes from a proxy that the operator named, and then from
// the right, where that proxy wrote, up to the first address that is no such
// proxy's. Forwarded, X-Real-IP and other headers are never read.
package clientaddr
