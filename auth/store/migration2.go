package store

import (
	"strings"

	"satchel/internal/database"
)

// signIn is the step that adds what people sign in with and what clients are
// granted by it.
func signIn() database.Migration {
	return database.Migration{
		Package: "auth/store", Version: 2, Name: "sessions, links, invitations, identities, passkeys, clients, tokens",
		SQLite: "ALTER TABLE auth_users ADD COLUMN email_key TEXT NOT NULL DEFAULT '';\nUPDATE auth_users SET email_key = lower(email);\n" +
			strings.NewReplacer("BYTEA", "BLOB", "SERIAL_KEY", "INTEGER PRIMARY KEY AUTOINCREMENT").Replace(signInTables),
		// Only ASCII is lowered: under a collation of a language I may become another letter than i.
		Postgres: "ALTER TABLE auth_users ADD COLUMN email_key TEXT NOT NULL DEFAULT '';\nUPDATE auth_users SET email_key = lower(email COLLATE \"C\");\n" +
			strings.NewReplacer("SERIAL_KEY", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY").Replace(signInTables),
	}
}

// All times are milliseconds since 1970; 0 is never. A column hash is the SHA-256
// of a secret. What is swept has an index on the time by which it is.
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
