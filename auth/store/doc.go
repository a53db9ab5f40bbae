// Package store keeps who may use Satchel: users and what they sign in with
// (sessions, one-time links, passkeys, identities at other issuers), invitations,
// the spaces that users are members of, the clients that they granted something
// to (an API key is such a grant, too), the tokens of these, the GitHub App and the
// repositories that are connected by it, and a log of every change to any of it. It
// is an auth.Verifier for the keys that it made, and checks their sessions and access
// tokens.
//
// It promises that a removed or suspended user, a lost membership, a lower role
// and a revoked or expired key, token or session have effect on every request that
// begins after, in every process on the same database: each check is one statement
// that looks at the rows, and nothing is cached. What is good for one use (a code,
// a link, an invitation, a sign-in under way) is used once, whoever else presents
// it in the same moment. Of every secret only the SHA-256 is kept, and tokens that
// must be told again come from a key that is not in the database; the secrets of the
// GitHub App, which must be read again, are sealed with such a key. Every act that
// changes something is in the audit log, in the same transaction, without a
// secret.
//
// Nothing that a stranger can make grows without bound, and what is over is
// deleted. Ids and secrets that are not the caller's look like ones that do not
// exist (fault.NotFound).
//
// It asks nobody for permission: whoever calls an act has checked that its Actor
// may do it; where an act takes the user beside an id, the id must be that user's.
// What a space holds is the git store's; here is only its row.
package store
