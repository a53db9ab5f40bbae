package store

import "satchel/internal/database"

// linkMakers is the step that adds who made a link to sign in with.
func linkMakers() database.Migration {
	const column = "ALTER TABLE auth_links ADD COLUMN by_user TEXT NOT NULL DEFAULT '';"
	return database.Migration{Package: "auth/store", Version: 5, Name: "who made a link", SQLite: column, Postgres: column}
}
