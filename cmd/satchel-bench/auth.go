//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"path/filepath"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"gorm.io/gorm"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/database"
	"satchel/internal/seal"
	"satchel/internal/space"
)

// manyClients is how many clients, grants and tokens must slow nothing.
const manyClients = 100_000

// authSuite measures the check of a token, beside the check of a signature, which servers do
// that do not look tokens up, and with many clients.
func authSuite(ctx context.Context, b *bench) error {
	few, err := b.tokens(ctx, "auth-few", 10)
	if err != nil {
		return err
	}
	n := manyClients
	if b.quick {
		n = 2000
	}
	many, err := b.tokens(ctx, "auth-many", n)
	if err != nil {
		return err
	}
	verify, err := signedToken()
	if err != nil {
		return err
	}
	var one, hundred, signature times
	err = errors.Join(few.open(ctx, func(a *store.Store) error {
		return many.open(ctx, func(z *store.Store) error {
			for i := range b.runs(20_000) + 200 {
				if i == 200 {
					one, hundred, signature = nil, nil, nil // warm by now
				}
				err := errors.Join(
					one.add(func() error { _, err := a.VerifyAccess(ctx, few.access, benchResource); return err }),
					hundred.add(func() error { _, err := z.VerifyAccess(ctx, many.access, benchResource); return err }),
					signature.add(verify),
				)
				if err != nil {
					return err
				}
			}
			return nil
		})
	}))
	if err != nil {
		return err
	}
	b.versus("auth_overhead_p50", one.median(), "ms", "the check of an ES256 signature", signature.median())
	b.versus("auth_overhead_many_p50", hundred.median(), "ms", "the same with 10 clients", one.median())
	return nil
}

const (
	benchIssuer   = "https://satchel.example"
	benchResource = benchIssuer + "/mcp"
)

// tokenSet is a data directory with many clients, and the access token of one.
type tokenSet struct {
	name, data, access string
}

// tokens makes a data directory with a user, whose n clients were granted what
// they asked for.
func (b *bench) tokens(ctx context.Context, name string, n int) (*tokenSet, error) {
	t := &tokenSet{name: name, data: filepath.Join(b.dir, name)}
	var u struct{ ID, Name string }
	if err := (&server{b: b, data: t.data}).admin(ctx, &u, "user", "add", "ada"); err != nil {
		return nil, err
	}
	return t, t.open(ctx, func(s *store.Store) error {
		spaces, err := s.SpacesOf(ctx, space.UserID(u.ID))
		if err != nil {
			return err
		}
		verifier := base64.RawURLEncoding.EncodeToString(make([]byte, 48))
		challenge := sha256.Sum256([]byte(verifier))
		const client, redirect = "https://claude.ai/oauth/claude-code-client-metadata", "http://localhost/callback"
		code, err := s.CreateCode(ctx, auth.Consent{
			Client: client, Name: "Claude Code", User: space.UserID(u.ID), Space: spaces[0].ID, Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite},
			Resource: benchResource, RedirectURI: redirect, Challenge: base64.RawURLEncoding.EncodeToString(challenge[:]),
		})
		if err != nil {
			return err
		}
		got, err := s.Redeem(ctx, auth.Redemption{Code: code.Reveal(), Client: client, RedirectURI: redirect, Verifier: verifier, Resource: benchResource})
		if err != nil {
			return err
		}
		t.access = got.Access.Reveal()
		return t.fill(ctx, n, got.Grant)
	})
}

// fill adds rows of n clients that look like the one of a grant.
func (t *tokenSet) fill(ctx context.Context, n int, like space.GrantID) error {
	return t.database(ctx, func(db *database.DB) error {
		return db.Transact(ctx, func(tx *gorm.DB) error {
			const count = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) `
			for _, stmt := range []string{
				count + `INSERT INTO auth_clients (id, kind, name, uri, redirect_uris, created, last_used)
					SELECT 'client-' || i, 'registered', 'Client ' || i, '', '["http://localhost/callback"]', g.created, g.created FROM n, auth_grants g WHERE g.id = ?`,
				count + `INSERT INTO auth_grants (id, user_id, space_id, scopes, name, created, expires, revoked, last_used, kind, issuer, client_id, resource)
					SELECT 'g_bench' || i, g.user_id, g.space_id, g.scopes, 'Client ' || i, g.created, g.expires, 0, 0, g.kind, '', 'client-' || i, g.resource FROM n, auth_grants g WHERE g.id = ?`,
				count + `INSERT INTO auth_families (grant_id, generation, key_id, hash, rotated, expires)
					SELECT 'g_bench' || i, 0, f.key_id, randomblob(32), f.rotated, f.expires FROM n, auth_families f WHERE f.grant_id = ?`,
				count + `INSERT INTO auth_tokens (hash, grant_id, generation, scopes, created, expires)
					SELECT randomblob(32), 'g_bench' || i, 0, t.scopes, t.created, t.expires FROM n, auth_tokens t WHERE t.grant_id = ?`,
			} {
				if err := tx.Exec(stmt, n, string(like)).Error; err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (t *tokenSet) database(ctx context.Context, do func(*database.DB) error) error {
	db, err := database.Open(ctx, database.Options{URL: "sqlite:" + filepath.Join(t.data, "satchel.db")})
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

// open opens the accounts of a data directory on which no server runs.
func (t *tokenSet) open(ctx context.Context, do func(*store.Store) error) error {
	box, err := seal.Load(filepath.Join(t.data, "server.key"))
	if err != nil {
		return err
	}
	key, err := box.Derive("tokens")
	if err != nil {
		return err
	}
	return t.database(ctx, func(db *database.DB) error {
		s := store.New(db, store.Options{TokenKey: key})
		return errors.Join(do(s), s.Close())
	})
}

// signedToken returns the check of a signed token with all that a resource server
// looks at.
func signedToken() (func() error, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
		"iss": benchIssuer, "aud": benchResource, "sub": "ada", "client_id": "claude", "scope": "read write",
		"exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
	}).SignedString(key)
	if err != nil {
		return nil, err
	}
	p := jwt.NewParser(jwt.WithValidMethods([]string{"ES256"}), jwt.WithIssuer(benchIssuer), jwt.WithAudience(benchResource), jwt.WithExpirationRequired())
	return func() error {
		_, err := p.Parse(token, func(*jwt.Token) (any, error) { return &key.PublicKey, nil })
		return err
	}, nil
}
