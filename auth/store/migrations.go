package store

import "satchel/internal/database"

// Migrations returns the steps that make this package's tables, for
// database.Migrate.
func Migrations() []database.Migration {
	return []database.Migration{{
		Package: "auth/store", Version: 1, Name: "users, spaces, members, grants, audit",
		SQLite: tables + `
CREATE TABLE auth_grants (
	id TEXT PRIMARY KEY,
	user_id TEXT NOT NULL REFERENCES auth_users (id),
	space_id TEXT NOT NULL REFERENCES auth_spaces (id),
	scopes TEXT NOT NULL,
	name TEXT NOT NULL,
	key_hash BLOB,
	created BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	revoked BIGINT NOT NULL,
	last_used BIGINT NOT NULL
);
CREATE TABLE auth_audit (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	at BIGINT NOT NULL,
	actor TEXT NOT NULL,
	via TEXT NOT NULL,
	action TEXT NOT NULL,
	subject TEXT NOT NULL,
	detail TEXT NOT NULL
);` + indexes,
		Postgres: tables + `
CREATE TABLE auth_grants (
	id TEXT PRIMARY KEY,
	user_id TEXT NOT NULL REFERENCES auth_users (id),
	space_id TEXT NOT NULL REFERENCES auth_spaces (id),
	scopes TEXT NOT NULL,
	name TEXT NOT NULL,
	key_hash BYTEA,
	created BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	revoked BIGINT NOT NULL,
	last_used BIGINT NOT NULL
);
CREATE TABLE auth_audit (
	id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at BIGINT NOT NULL,
	actor TEXT NOT NULL,
	via TEXT NOT NULL,
	action TEXT NOT NULL,
	subject TEXT NOT NULL,
	detail TEXT NOT NULL
);` + indexes,
	}, signIn(), githubApp(), deletedSpaces(), linkMakers(), linkNotices(), signInAges(), dropSignInAges()}
}

// Rows of removed users stay, so that the audit log and the authors of commits
// keep their names; a name may be given again.
const tables = `
CREATE TABLE auth_users (
	id TEXT PRIMARY KEY,
	issuer TEXT NOT NULL,
	subject TEXT NOT NULL,
	name TEXT NOT NULL,
	display TEXT NOT NULL,
	email TEXT NOT NULL,
	admin BOOLEAN NOT NULL,
	created BIGINT NOT NULL,
	removed BIGINT NOT NULL
);
CREATE TABLE auth_spaces (
	id TEXT PRIMARY KEY,
	name TEXT NOT NULL,
	owner_id TEXT NOT NULL REFERENCES auth_users (id),
	created BIGINT NOT NULL
);
CREATE TABLE auth_members (
	space_id TEXT NOT NULL REFERENCES auth_spaces (id),
	user_id TEXT NOT NULL REFERENCES auth_users (id),
	role TEXT NOT NULL CHECK (role IN ('owner', 'editor', 'reader')),
	added BIGINT NOT NULL,
	PRIMARY KEY (space_id, user_id)
);`

// A grant without a key hash is proven in another way than by an API key, and
// the databases agree that any number of NULLs is unique.
const indexes = `
CREATE UNIQUE INDEX auth_users_name ON auth_users (name) WHERE removed = 0;
CREATE UNIQUE INDEX auth_users_subject ON auth_users (issuer, subject) WHERE removed = 0;
CREATE UNIQUE INDEX auth_spaces_name ON auth_spaces (owner_id, name);
CREATE UNIQUE INDEX auth_grants_key ON auth_grants (key_hash);
CREATE INDEX auth_grants_user ON auth_grants (user_id);
CREATE INDEX auth_grants_space ON auth_grants (space_id);
CREATE INDEX auth_members_user ON auth_members (user_id);
`
