package sources

import "satchel/internal/database"

// Migrations returns the steps that make this package's tables, for
// database.Migrate.
func Migrations() []database.Migration {
	return []database.Migration{{
		Package: "gitstore/sources", Version: 1, Name: "published sources and their audience",
		SQLite: tables, Postgres: tables,
	}, {
		Package: "gitstore/sources", Version: 2, Name: "the title of a source under its name",
		SQLite: renameLabel, Postgres: renameLabel,
	}, {
		Package: "gitstore/sources", Version: 3, Name: "the aliases of a source",
		SQLite: addAliases, Postgres: addAliases,
	}}
}

// The result of the last snapshot has its own table, so that publishing a source and
// creating its snapshot cannot overwrite each other's values.
const tables = `
CREATE TABLE sources (
	id TEXT PRIMARY KEY,
	label TEXT NOT NULL,
	description TEXT NOT NULL,
	kind TEXT NOT NULL,
	space_id TEXT NOT NULL,
	dir TEXT NOT NULL,
	everybody BOOLEAN NOT NULL,
	by_user TEXT NOT NULL,
	published BIGINT NOT NULL,
	changed BIGINT NOT NULL,
	collection TEXT NOT NULL UNIQUE
);
CREATE INDEX sources_space ON sources (space_id);
CREATE TABLE sources_users (
	source_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	PRIMARY KEY (source_id, user_id)
);
CREATE TABLE sources_synced (
	collection TEXT PRIMARY KEY,
	commit_id TEXT NOT NULL,
	synced BIGINT NOT NULL,
	files BIGINT NOT NULL,
	bytes BIGINT NOT NULL,
	error TEXT NOT NULL
);
CREATE TABLE sources_ended (
	collection TEXT PRIMARY KEY
);`

// The columns of texts have the names of the fields of space.SourceText.
const renameLabel = `ALTER TABLE sources RENAME COLUMN label TO title;`

const addAliases = `ALTER TABLE sources ADD COLUMN aliases TEXT NOT NULL DEFAULT '';`
