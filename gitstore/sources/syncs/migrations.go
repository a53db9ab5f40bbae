package syncs

import "satchel/internal/database"

// Migrations returns the steps that make this package's tables, for database.Migrate.
func Migrations() []database.Migration {
	return []database.Migration{{
		Package: "gitstore/sources/syncs", Version: 1, Name: "syncs, their manifests and their runs",
		SQLite: tables, Postgres: tables,
	}, {
		Package: "gitstore/sources/syncs", Version: 2, Name: "what upstream says about its package",
		SQLite: addPackage, Postgres: addPackage,
	}}
}

// Times are milliseconds since 1970; 0 means never.
const tables = `
CREATE TABLE syncs (
	source_id TEXT PRIMARY KEY,
	space_id TEXT NOT NULL UNIQUE,
	kind TEXT NOT NULL,
	settings TEXT NOT NULL,
	trusted BOOLEAN NOT NULL,
	origin TEXT NOT NULL,
	every BIGINT NOT NULL,
	paused BOOLEAN NOT NULL,
	state TEXT NOT NULL,
	problem TEXT NOT NULL,
	version TEXT NOT NULL,
	commit_id TEXT NOT NULL,
	checked BIGINT NOT NULL,
	next BIGINT NOT NULL,
	failures BIGINT NOT NULL
);
CREATE TABLE syncs_files (
	source_id TEXT NOT NULL,
	path TEXT NOT NULL,
	title TEXT NOT NULL,
	url TEXT NOT NULL,
	tag TEXT NOT NULL,
	changed BIGINT NOT NULL,
	blob_id TEXT NOT NULL,
	size BIGINT NOT NULL,
	PRIMARY KEY (source_id, path)
);
CREATE TABLE syncs_runs (
	id TEXT PRIMARY KEY,
	source_id TEXT NOT NULL,
	reset_all BOOLEAN NOT NULL,
	confirmed BOOLEAN NOT NULL,
	started BIGINT NOT NULL,
	ended BIGINT NOT NULL,
	state TEXT NOT NULL,
	problem TEXT NOT NULL,
	version TEXT NOT NULL,
	commit_id TEXT NOT NULL,
	counts TEXT NOT NULL
);
CREATE INDEX syncs_runs_source ON syncs_runs (source_id, started);
`

const addPackage = `ALTER TABLE syncs ADD COLUMN package TEXT NOT NULL DEFAULT '';`
