package store

import (
	"strings"

	"satchel/internal/database"
)

// Migrations returns the steps that create this package's tables, for database.Migrate.
//
// All times are milliseconds since 1970; 0 means never. A column named hash holds the
// SHA-256 of a secret. Tables whose rows expire have an index on the time of expiry.
func Migrations() []database.Migration {
	return []database.Migration{
		migration(1, "users, spaces, members, grants, audit", usersTables),
		signIn(),
		migration(3, "GitHub App, repositories, approvals, deliveries", githubTables),
		migration(4, "deleted spaces", deletedTable),
		migration(5, "who made a link", "ALTER TABLE auth_links ADD COLUMN by_user TEXT NOT NULL DEFAULT '';"),
		migration(6, "what people are told of links to their accounts", linkNoticesTable),
		migration(7, "since when a way to sign in is there", `
ALTER TABLE auth_sessions ADD COLUMN way_added BIGINT NOT NULL DEFAULT 0;
ALTER TABLE auth_users ADD COLUMN email_set BIGINT NOT NULL DEFAULT 0;
CREATE INDEX auth_link_notices_maker ON auth_link_notices (by_user) WHERE state = 1;
`),
		migration(8, "no ages of ways to sign in", `
DROP INDEX auth_link_notices_unseen;
ALTER TABLE auth_sessions DROP COLUMN way_added;
ALTER TABLE auth_users DROP COLUMN email_set;
`),
		migration(9, "the spaces of synced sources", "ALTER TABLE auth_spaces ADD COLUMN source TEXT NOT NULL DEFAULT '';"),
		migration(10, "settings that admins choose on the pages; times of the audit log", `
CREATE TABLE auth_settings (
	name TEXT PRIMARY KEY,
	value TEXT NOT NULL
);
CREATE INDEX auth_audit_at ON auth_audit (at);
`),
	}
}

// migration returns the step that runs sql. sql is in PostgreSQL's dialect, with SERIAL_KEY for
// an autoincrement key.
func migration(version int, name, sql string) database.Migration {
	return database.Migration{
		Package: "auth/store", Version: version, Name: name,
		SQLite:   strings.NewReplacer("BYTEA", "BLOB", "SERIAL_KEY", "INTEGER PRIMARY KEY AUTOINCREMENT").Replace(sql),
		Postgres: strings.ReplaceAll(sql, "SERIAL_KEY", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
	}
}

// signIn returns the step that adds ways to sign in, and grants of clients. In addresses it
// changes only ASCII letters to lower case. Under a language's collation, Postgres could
// turn I into a letter other than i.
func signIn() database.Migration {
	const column = "ALTER TABLE auth_users ADD COLUMN email_key TEXT NOT NULL DEFAULT '';\n"
	m := migration(2, "sessions, links, invitations, identities, passkeys, clients, tokens", signInTables)
	m.SQLite = column + "UPDATE auth_users SET email_key = lower(email);\n" + m.SQLite
	m.Postgres = column + "UPDATE auth_users SET email_key = lower(email COLLATE \"C\");\n" + m.Postgres
	return m
}

// usersTables keeps the rows of removed users, so that the audit log and the authors of
// commits keep their names. Another user can take the name. A grant without a key hash is
// not an API key. SQLite and PostgreSQL allow many NULLs in a unique index.
const usersTables = `
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
);
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
	id SERIAL_KEY,
	at BIGINT NOT NULL,
	actor TEXT NOT NULL,
	via TEXT NOT NULL,
	action TEXT NOT NULL,
	subject TEXT NOT NULL,
	detail TEXT NOT NULL
);
CREATE UNIQUE INDEX auth_users_name ON auth_users (name) WHERE removed = 0;
CREATE UNIQUE INDEX auth_users_subject ON auth_users (issuer, subject) WHERE removed = 0;
CREATE UNIQUE INDEX auth_spaces_name ON auth_spaces (owner_id, name);
CREATE UNIQUE INDEX auth_grants_key ON auth_grants (key_hash);
CREATE INDEX auth_grants_user ON auth_grants (user_id);
CREATE INDEX auth_grants_space ON auth_grants (space_id);
CREATE INDEX auth_members_user ON auth_members (user_id);
`

const signInTables = `
ALTER TABLE auth_users ADD COLUMN admitted TEXT NOT NULL DEFAULT 'command';
ALTER TABLE auth_users ADD COLUMN suspended BIGINT NOT NULL DEFAULT 0;
CREATE INDEX auth_users_email ON auth_users (email_key) WHERE removed = 0 AND email_key <> '';

ALTER TABLE auth_grants ADD COLUMN kind TEXT NOT NULL DEFAULT 'key';
ALTER TABLE auth_grants ADD COLUMN issuer TEXT NOT NULL DEFAULT '';
ALTER TABLE auth_grants ADD COLUMN client_id TEXT NOT NULL DEFAULT '';
ALTER TABLE auth_grants ADD COLUMN resource TEXT NOT NULL DEFAULT '';
CREATE INDEX auth_grants_client ON auth_grants (client_id) WHERE client_id <> '';
CREATE UNIQUE INDEX auth_grants_external ON auth_grants (user_id, space_id, issuer, client_id) WHERE kind = 'external';
CREATE INDEX auth_grants_revoked ON auth_grants (revoked) WHERE revoked <> 0;
CREATE INDEX auth_grants_expires ON auth_grants (expires) WHERE kind = 'oauth';

CREATE TABLE auth_sessions (
	id TEXT PRIMARY KEY,
	hash BYTEA NOT NULL,
	user_id TEXT NOT NULL REFERENCES auth_users (id),
	method TEXT NOT NULL,
	agent TEXT NOT NULL,
	address TEXT NOT NULL,
	created BIGINT NOT NULL,
	seen BIGINT NOT NULL,
	expires BIGINT NOT NULL
);
CREATE UNIQUE INDEX auth_sessions_hash ON auth_sessions (hash);
CREATE INDEX auth_sessions_user ON auth_sessions (user_id);
CREATE INDEX auth_sessions_seen ON auth_sessions (seen);
CREATE INDEX auth_sessions_expires ON auth_sessions (expires);

CREATE TABLE auth_links (
	hash BYTEA PRIMARY KEY,
	user_id TEXT NOT NULL REFERENCES auth_users (id),
	method TEXT NOT NULL,
	created BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	used BIGINT NOT NULL
);
CREATE INDEX auth_links_user ON auth_links (user_id);
CREATE INDEX auth_links_expires ON auth_links (expires);

CREATE TABLE auth_invitations (
	id TEXT PRIMARY KEY,
	hash BYTEA NOT NULL,
	by_user TEXT NOT NULL,
	note TEXT NOT NULL,
	email TEXT NOT NULL,
	admin BOOLEAN NOT NULL,
	space_id TEXT NOT NULL,
	role TEXT NOT NULL,
	created BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	used BIGINT NOT NULL,
	used_by TEXT NOT NULL
);
CREATE UNIQUE INDEX auth_invitations_hash ON auth_invitations (hash);
CREATE INDEX auth_invitations_by ON auth_invitations (by_user);
CREATE INDEX auth_invitations_used_by ON auth_invitations (used_by);
CREATE INDEX auth_invitations_expires ON auth_invitations (expires);

CREATE TABLE auth_identities (
	issuer TEXT NOT NULL,
	subject TEXT NOT NULL,
	user_id TEXT NOT NULL REFERENCES auth_users (id),
	label TEXT NOT NULL,
	email TEXT NOT NULL,
	created BIGINT NOT NULL,
	PRIMARY KEY (issuer, subject)
);
CREATE INDEX auth_identities_user ON auth_identities (user_id);
CREATE TABLE auth_barred (
	issuer TEXT NOT NULL,
	subject TEXT NOT NULL,
	email_key TEXT NOT NULL,
	at BIGINT NOT NULL,
	PRIMARY KEY (issuer, subject)
);
CREATE INDEX auth_barred_email ON auth_barred (email_key) WHERE email_key <> '';
INSERT INTO auth_identities (issuer, subject, user_id, label, email, created)
	SELECT issuer, subject, id, display, '', created FROM auth_users WHERE issuer <> 'local' AND removed = 0;

CREATE TABLE auth_passkeys (
	id BYTEA PRIMARY KEY,
	user_id TEXT NOT NULL REFERENCES auth_users (id),
	name TEXT NOT NULL,
	credential BYTEA NOT NULL,
	created BIGINT NOT NULL,
	used BIGINT NOT NULL
);
CREATE INDEX auth_passkeys_user ON auth_passkeys (user_id);

CREATE TABLE auth_flows (
	hash BYTEA PRIMARY KEY,
	kind TEXT NOT NULL,
	data BYTEA NOT NULL,
	expires BIGINT NOT NULL
);
CREATE INDEX auth_flows_expires ON auth_flows (expires);

CREATE TABLE auth_clients (
	id TEXT PRIMARY KEY,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	uri TEXT NOT NULL,
	redirect_uris TEXT NOT NULL,
	created BIGINT NOT NULL,
	last_used BIGINT NOT NULL
);
CREATE INDEX auth_clients_unused ON auth_clients (kind, last_used, created);

CREATE TABLE auth_codes (
	hash BYTEA PRIMARY KEY,
	client_id TEXT NOT NULL,
	name TEXT NOT NULL,
	user_id TEXT NOT NULL REFERENCES auth_users (id),
	space_id TEXT NOT NULL REFERENCES auth_spaces (id),
	scopes TEXT NOT NULL,
	resource TEXT NOT NULL,
	redirect_uri TEXT NOT NULL,
	challenge TEXT NOT NULL,
	created BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	used BIGINT NOT NULL,
	grant_id TEXT NOT NULL
);
CREATE INDEX auth_codes_user ON auth_codes (user_id);
CREATE INDEX auth_codes_space ON auth_codes (space_id);
CREATE INDEX auth_codes_client ON auth_codes (client_id);
CREATE INDEX auth_codes_expires ON auth_codes (expires);

CREATE TABLE auth_token_keys (
	id SERIAL_KEY,
	salt BYTEA NOT NULL,
	created BIGINT NOT NULL,
	idle BIGINT NOT NULL
);
CREATE TABLE auth_families (
	grant_id TEXT PRIMARY KEY REFERENCES auth_grants (id),
	generation BIGINT NOT NULL,
	key_id BIGINT NOT NULL REFERENCES auth_token_keys (id),
	hash BYTEA NOT NULL,
	rotated BIGINT NOT NULL,
	expires BIGINT NOT NULL
);
CREATE INDEX auth_families_key ON auth_families (key_id);
CREATE INDEX auth_families_expires ON auth_families (expires);
CREATE TABLE auth_tokens (
	hash BYTEA PRIMARY KEY,
	grant_id TEXT NOT NULL REFERENCES auth_grants (id),
	generation BIGINT NOT NULL,
	scopes TEXT NOT NULL,
	created BIGINT NOT NULL,
	expires BIGINT NOT NULL
);
CREATE INDEX auth_tokens_grant ON auth_tokens (grant_id, generation);
CREATE INDEX auth_tokens_expires ON auth_tokens (expires);
`

// githubTables has room for one App, because a server has one. The column secrets is
// encrypted. A repository belongs to one space. If it belonged to two, the members of each space
// would see the files of the other.
const githubTables = `
CREATE TABLE auth_github_app (
	one BIGINT PRIMARY KEY CHECK (one = 1),
	url TEXT NOT NULL,
	app_id BIGINT NOT NULL,
	client_id TEXT NOT NULL,
	slug TEXT NOT NULL,
	name TEXT NOT NULL,
	owner TEXT NOT NULL,
	html_url TEXT NOT NULL,
	creates BOOLEAN NOT NULL,
	created BIGINT NOT NULL,
	secrets BYTEA NOT NULL
);
CREATE TABLE auth_github_links (
	space_id TEXT PRIMARY KEY REFERENCES auth_spaces (id),
	user_id TEXT NOT NULL REFERENCES auth_users (id),
	github_user BIGINT NOT NULL,
	github_login TEXT NOT NULL,
	installation BIGINT NOT NULL,
	account TEXT NOT NULL,
	repository BIGINT NOT NULL,
	full_name TEXT NOT NULL,
	state TEXT NOT NULL CHECK (state IN ('connected', 'suspended', 'removed', 'lost')),
	since BIGINT NOT NULL,
	checked BIGINT NOT NULL,
	created BIGINT NOT NULL
);
CREATE INDEX auth_github_links_user ON auth_github_links (user_id);
CREATE UNIQUE INDEX auth_github_links_repository ON auth_github_links (repository);
CREATE TABLE auth_github_requests (
	space_id TEXT PRIMARY KEY REFERENCES auth_spaces (id),
	user_id TEXT NOT NULL REFERENCES auth_users (id),
	created BIGINT NOT NULL
);
CREATE INDEX auth_github_requests_user ON auth_github_requests (user_id);
CREATE INDEX auth_github_requests_created ON auth_github_requests (created);
CREATE TABLE auth_github_deliveries (
	id TEXT PRIMARY KEY,
	seen BIGINT NOT NULL
);
CREATE INDEX auth_github_deliveries_seen ON auth_github_deliveries (seen);
`

// deletedTable keeps a row for each deleted space for ever, so that its id is never reused and
// the audit log has a name for it. ended is when the last of the space's data was removed.
const deletedTable = `
CREATE TABLE auth_deleted_spaces (
	id TEXT PRIMARY KEY,
	name TEXT NOT NULL,
	owner_id TEXT NOT NULL,
	at BIGINT NOT NULL,
	ended BIGINT NOT NULL
);
CREATE INDEX auth_deleted_spaces_ended ON auth_deleted_spaces (ended) WHERE ended = 0;
`

// linkNoticesTable keeps a row after its link has ended, so that people can still see the notice.
const linkNoticesTable = `
CREATE TABLE auth_link_notices (
	id TEXT PRIMARY KEY,
	hash BYTEA NOT NULL,
	user_id TEXT NOT NULL REFERENCES auth_users (id),
	by_user TEXT NOT NULL,
	created BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	used BIGINT NOT NULL,
	state BIGINT NOT NULL,
	seen BIGINT NOT NULL
);
CREATE UNIQUE INDEX auth_link_notices_hash ON auth_link_notices (hash);
CREATE INDEX auth_link_notices_user ON auth_link_notices (user_id, state, created);
CREATE INDEX auth_link_notices_unseen ON auth_link_notices (user_id, state, created) WHERE seen < state;
CREATE INDEX auth_link_notices_unused ON auth_link_notices (expires) WHERE state = 1;
`
