// Package databasetest runs a test on every kind of database that Satchel supports. Only
// tests import it.
package databasetest

import (
	"context"
	"crypto/rand"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"satchel/internal/database"
	"satchel/internal/testenv"
)

// Each runs fn in two subtests, "sqlite" and "postgres", each with a fresh database. The
// subtest postgres needs the server in SATCHEL_TEST_POSTGRES (see testenv.Postgres). It
// creates a database there, and drops the database at the end.
func Each(t *testing.T, fn func(t *testing.T, db *database.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { fn(t, Open(t, SQLite(t))) })
	t.Run("postgres", func(t *testing.T) { fn(t, Open(t, Postgres(t))) })
}

// SQLite returns the URL of a fresh SQLite database.
func SQLite(t testing.TB) string {
	return "sqlite:" + filepath.Join(t.TempDir(), "test.db")
}

// Postgres returns the URL of a fresh PostgreSQL database. The database is dropped when the
// test ends.
func Postgres(t testing.TB) string {
	t.Helper()
	server := testenv.Postgres(t)
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("SATCHEL_TEST_POSTGRES is no URL")
	}
	name := "satchel_test_" + rand.Text()
	admin(t, server, `CREATE DATABASE "`+name+`"`)
	t.Cleanup(func() { admin(t, server, `DROP DATABASE "`+name+`" WITH (FORCE)`) })
	u.Path = "/" + name
	return u.String()
}

// Open opens the database at u, and closes it when the test ends.
func Open(t testing.TB, u string) *database.DB {
	t.Helper()
	db, err := database.Open(t.Context(), database.Options{URL: u})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func admin(t testing.TB, server, stmt string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, stmt); err != nil {
		t.Fatal(err)
	}
}
