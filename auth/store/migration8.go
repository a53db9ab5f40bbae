package store

import "satchel/internal/database"

// dropSignInAges is the step that forgets since when people could sign in as they do:
// no rule asks for it.
func dropSignInAges() database.Migration {
	const step = `
DROP INDEX auth_link_notices_unseen;
ALTER TABLE auth_sessions DROP COLUMN way_added;
ALTER TABLE auth_users DROP COLUMN email_set;
`
	return database.Migration{Package: "auth/store", Version: 8, Name: "no ages of ways to sign in", SQLite: step, Postgres: step}
}
