// Package store keeps who may use Satchel: users, the spaces that they are
// members of, what their clients were given (grants, of which an API key is
// one), and a log of every change to these. It is an auth.Verifier for the keys
// that it made.
//
// It promises that a removed user, a lost membership and a revoked or expired
// key have no effect on any request that begins after, in every process on the
// same database: each Verify looks at the rows, and nothing is cached. Of a key
// only its SHA-256 is kept. Every act that changes something is in the audit
// log, in the same transaction.
//
// It asks nobody for permission: whoever calls an act has checked that its Actor
// may do it. What a space holds is the git store's; here is only its row.
package store
