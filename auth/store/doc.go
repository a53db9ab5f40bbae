// Package store stores accounts: users, their sessions, one-time links, passkeys and
// identities at other issuers, invitations, spaces and their members, clients, grants (an
// API key is a grant too) and their tokens, the GitHub App and the repositories that it
// connects, and the audit log of all changes. It is an auth.Verifier for its API keys, and
// checks sessions and access tokens.
//
// If a user is removed or suspended, loses a membership or gets a lower role, or if a key,
// token or session is revoked or expires, this affects every later request, in every
// process on the same database: each check is one query of the rows, and nothing is cached.
// A code, link, invitation or sign-in in progress is used once, even by simultaneous
// requests. The database has only the SHA-256 hash of a secret. Tokens that must be
// returned again are derived from a key that is not in the database, and the secrets of the
// GitHub App are encrypted with such a key. Every change has an audit entry in the same
// transaction, without secrets.
//
// The number of rows that strangers can create is limited, and expired rows are deleted.
// Ids and secrets of others look as if they did not exist (fault.NotFound).
//
// The package does not check permissions: the caller has verified that the Actor may do it.
// If a method takes a user and an id, the id must be that user's. The content of a space is
// in the git store; this package has only its row.
package store
