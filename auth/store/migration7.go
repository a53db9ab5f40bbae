package store

import "satchel/internal/database"

// signInAges is the step that adds since when somebody could sign in as they did, and
// finds what an admin made that ends with their rights.
func signInAges() database.Migration {
	const step = `
ALTER TABLE auth_sessions ADD COLUMN way_added BIGINT NOT NULL DEFAULT 0;
ALTER TABLE auth_users ADD COLUMN email_set BIGINT NOT NULL DEFAULT 0;
CREATE INDEX auth_link_notices_maker ON auth_link_notices (by_user) WHERE state = 1;
`
	return database.Migration{Package: "auth/store", Version: 7, Name: "since when a way to sign in is there", SQLite: step, Postgres: step}
}
