package remotes

import "satchel/internal/database"

// Migrations returns the steps that create this package's tables, for database.Migrate.
func Migrations() []database.Migration {
	return []database.Migration{{
		Package: "gitstore/remotes", Version: 1, Name: "remotes, how their last sync ended, notices",
		SQLite:   tables("BLOB", "INTEGER PRIMARY KEY AUTOINCREMENT"),
		Postgres: tables("BYTEA", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
	}}
}

// tables returns the SQL that creates the tables. The state of a sync has a table of its own,
// because it is written much more often than the remote. So neither write can overwrite the other.
func tables(blob, identity string) string {
	return `
CREATE TABLE remotes (
	space_id TEXT PRIMARY KEY,
	url TEXT NOT NULL,
	branch TEXT NOT NULL,
	chosen BOOLEAN NOT NULL,
	trusted BOOLEAN NOT NULL,
	kind TEXT NOT NULL,
	username TEXT NOT NULL,
	secret ` + blob + `,
	created BIGINT NOT NULL,
	changed BIGINT NOT NULL
);
CREATE TABLE remotes_synced (
	space_id TEXT PRIMARY KEY,
	last_check BIGINT NOT NULL,
	last_sync BIGINT NOT NULL,
	failing_since BIGINT NOT NULL,
	wait_until BIGINT NOT NULL,
	attempts BIGINT NOT NULL,
	problem TEXT NOT NULL,
	detail TEXT NOT NULL,
	remedy TEXT NOT NULL,
	locations TEXT NOT NULL
);
CREATE TABLE remotes_notices (
	id ` + identity + `,
	space_id TEXT NOT NULL,
	at BIGINT NOT NULL,
	text TEXT NOT NULL
);
CREATE INDEX remotes_notices_space ON remotes_notices (space_id);
CREATE TABLE remotes_seen (
	space_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	notice_id BIGINT NOT NULL,
	PRIMARY KEY (space_id, user_id)
);`
}
