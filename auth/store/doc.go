// Package store stores accounts: users, their sessions, one-time links, passkeys and identities
// at other issuers, invitations, spaces and their members, clients, grants (an API key is a
// grant too) and their tokens, the GitHub App and the repositories that it connects, and the
// audit log of all changes. [New] returns a [Store] on a database to which [Migrations] were
// applied. The Store is the auth.Verifier of its API keys, and also checks sessions and access
// tokens.
//
// A change of rights affects every later request, in every process on the same database.
// Such changes are the removal or suspension of a user, the end of a membership, a lower
// role, and the revocation or expiry of a key, token or session. Each check is one query of
// the rows, and nothing is cached. A code, link, invitation or sign-in in progress can be
// used only once, even if requests arrive together. The database has only the SHA-256 hash of a
// secret. Tokens that must be returned again are derived from a key outside the database.
// The secrets of the GitHub App are encrypted with such a key. A change writes an audit entry in
// the same transaction, without secrets, unless it only records uses, times or a sign-in in
// progress.
//
// The number of rows that strangers can create is limited, and expired rows are deleted. Ids
// and secrets of other people look as if they did not exist (fault.NotFound).
//
// The package does not check permissions: the caller has verified that the Actor has the
// right. If a method takes a user and an id, the id must be that user's. The package has
// only the row of a space; its content is in the git store.
package store
