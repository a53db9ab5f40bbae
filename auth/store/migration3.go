package store

import (
	"strings"

	"satchel/internal/database"
)

// githubApp is the step that adds the GitHub App and what is connected by it.
func githubApp() database.Migration {
	return database.Migration{
		Package: "auth/store", Version: 3, Name: "GitHub App, repositories, approvals, deliveries",
		SQLite:   strings.ReplaceAll(githubTables, "BYTEA", "BLOB"),
		Postgres: githubTables,
	}
}

// There is one App, so that its table has room for one row. secrets is sealed. A
// repository belongs to one space: by a second one the members of each would see
// what the others keep.
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
