package store_test

import (
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/space"
)

// crowd is the count of other clients, grants, families, tokens and sessions in the database.
const crowd = 100_000

// fill creates the crowd. Its grants belong to 1000 users.
func fill(b *testing.B, db *database.DB) {
	b.Helper()
	numbers, blob := `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) `, "randomblob(32)"
	from := "FROM n"
	if db.Kind() == database.Postgres {
		numbers, blob, from = "", "sha256((random()::text || i)::bytea)", fmt.Sprintf("FROM generate_series(1, %d) AS n (i)", crowd)
	}
	with := func(n int) string {
		if numbers == "" {
			return ""
		}
		return fmt.Sprintf(numbers, n)
	}
	err := db.Transact(b.Context(), func(tx *gorm.DB) error {
		var key int64
		if err := tx.Raw("SELECT MIN(id) FROM auth_token_keys").Scan(&key).Error; err != nil {
			return err
		}
		for _, stmt := range []string{
			with(1000) + `INSERT INTO auth_users (id, issuer, subject, name, display, email, admin, created, removed) SELECT 'u_' || i, 'local', 'u_' || i, 'user' || i, '', '', FALSE, 1, 0 ` + strings.Replace(from, fmt.Sprint(crowd), "1000", 1),
			with(1000) + `INSERT INTO auth_spaces SELECT 's_' || i, 'space', 'u_' || i, 1 ` + strings.Replace(from, fmt.Sprint(crowd), "1000", 1),
			with(1000) + `INSERT INTO auth_members SELECT 's_' || i, 'u_' || i, 'owner', 1 ` + strings.Replace(from, fmt.Sprint(crowd), "1000", 1),
			with(crowd) + `INSERT INTO auth_clients SELECT 'c_' || i, 'registered', 'Client', '', '["http://localhost/cb"]', 9000000000000, 9000000000000 ` + from,
			with(crowd) + `INSERT INTO auth_grants (id, user_id, space_id, scopes, name, key_hash, created, expires, revoked, last_used, kind, client_id, resource)
				SELECT 'g_' || i, 'u_' || (i % 1000 + 1), 's_' || (i % 1000 + 1), 'read', '', NULL, 0, 9000000000000, 0, 0, 'oauth', 'c_' || i, 'r' ` + from,
			with(crowd) + `INSERT INTO auth_families SELECT 'g_' || i, 1, ` + fmt.Sprint(key) + `, ` + blob + `, 0, 9000000000000 ` + from,
			with(crowd) + `INSERT INTO auth_tokens SELECT ` + blob + `, 'g_' || i, 1, 'read', 0, 9000000000000 ` + from,
			with(crowd) + `INSERT INTO auth_sessions SELECT 'ss_' || i, ` + blob + `, 'u_' || (i % 1000 + 1), 'link', '', '', 0, 9000000000000, 9000000000000 ` + from,
		} {
			if err := tx.Exec(stmt).Error; err != nil {
				return err
			}
		}
		if db.Kind() == database.Postgres {
			return tx.Exec("ANALYZE").Error // the server does this by itself after a while
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAccess measures the check of an access token, which may take at most 0.2 ms, and
// the operations of the authorization server, alone and in a crowd.
func BenchmarkAccess(b *testing.B) {
	for _, kind := range []struct {
		name string
		url  func(testing.TB) string
	}{{"sqlite", databasetest.SQLite}, {"postgres", databasetest.Postgres}} {
		b.Run(kind.name, func(b *testing.B) {
			db := databasetest.Open(b, kind.url(b))
			if _, err := db.Migrate(b.Context(), store.Migrations()...); err != nil {
				b.Fatal(err)
			}
			s := store.New(db, store.Options{TokenKey: []byte(tokenKey), MaxClients: 10 * crowd})
			defer s.Close()
			u, sp, err := s.CreateUser(b.Context(), cli, store.NewUser{Name: "ann", Identity: &store.Identity{Issuer: "https://issuer.example", Subject: "ann-1"}})
			if err != nil {
				b.Fatal(err)
			}
			connect := func() (auth.Tokens, error) {
				code, err := s.CreateCode(b.Context(), consent(u, sp))
				if err != nil {
					return auth.Tokens{}, err
				}
				return s.Redeem(b.Context(), redemption(code))
			}
			tok, err := connect()
			if err != nil {
				b.Fatal(err)
			}
			_, key, err := s.CreateKey(b.Context(), cli, store.NewKey{User: u.ID, Space: sp.ID, Scopes: []space.Scope{space.ScopeRead}})
			if err != nil {
				b.Fatal(err)
			}
			session, _, err := s.StartSession(b.Context(), store.NewSession{User: u.ID, Method: "link"})
			if err != nil {
				b.Fatal(err)
			}
			clients := 0
			for _, n := range []int{0, crowd} {
				if n > 0 {
					fill(b, db)
				}
				for _, act := range []struct {
					name string
					do   func() error
				}{
					{"verify-access", func() error { _, err := s.VerifyAccess(b.Context(), tok.Access.Reveal(), resource); return err }},
					{"verify-key", func() error { _, err := s.Verify(b.Context(), key.Reveal()); return err }},
					{"check-session", func() error { _, _, err := s.CheckSession(b.Context(), session.Reveal()); return err }},
					{"external", func() error { _, err := s.External(b.Context(), external("ann-1")); return err }},
					{"connect", func() error { _, err := connect(); return err }},
					{"refresh", func() (err error) { tok, err = s.Refresh(b.Context(), renewal(tok.Refresh)); return err }},
					{"register", func() error {
						clients++
						return s.RegisterClient(b.Context(), auth.Client{ID: fmt.Sprint("new-", n, "-", clients), RedirectURIs: []string{redirect}})
					}},
					{"sweep", func() error { return s.Sweep(b.Context()) }},
				} {
					b.Run(fmt.Sprintf("%s/crowd=%d", act.name, n), func(b *testing.B) {
						for b.Loop() {
							if err := act.do(); err != nil {
								b.Fatal(err)
							}
						}
					})
				}
			}
		})
	}
}
