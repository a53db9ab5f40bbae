package store

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/internal/space"
)

// Each use of a refresh token returns a new one, so that the use of a stolen token is
// detected (RFC 9700 section 4.14.2). The refresh tokens of a grant are its family. Each
// refresh token has a generation, counted from 1.
//
// The tokens of a generation are HMAC-SHA256 of their kind, the grant, the generation and, for
// an access token, the scopes. The key of the HMAC is derived from the server's key and a salt.
// So the server can return the same tokens again to a client that asks twice, although the
// database has only hashes. A crash between the commit and the answer loses nothing. Each
// generation uses the newest salt. There is a new salt every 30 days.

const (
	saltLifetime = 30 * day
	refreshBytes = 8 + 16 + 8 + sha256.Size
)

type familyRow struct {
	GrantID    string `gorm:"primaryKey"`
	Generation int64
	KeyID      int64  // the id of the key that derives the tokens of Generation
	Hash       []byte // hash of the refresh token of Generation
	Rotated    int64  // when Generation began
	Expires    int64
}

func (familyRow) TableName() string { return "auth_families" }

type tokenRow struct {
	Hash             []byte `gorm:"primaryKey"`
	GrantID          string
	Generation       int64
	Scopes           string
	Created, Expires int64
}

func (tokenRow) TableName() string { return "auth_tokens" }

type tokenKeyRow struct {
	ID            int64 `gorm:"primaryKey"`
	Salt          []byte
	Created, Idle int64
}

func (tokenKeyRow) TableName() string { return "auth_token_keys" }

// tokenKey derives the tokens of a generation.
type tokenKey struct {
	id  int64
	key []byte
}

func (s *Store) deriveKey(r tokenKeyRow) (tokenKey, error) {
	if len(s.o.TokenKey) < sha256.Size {
		return tokenKey{}, errors.New("the store has no key for tokens")
	}
	key, err := hkdf.Key(sha256.New, s.o.TokenKey, r.Salt, "satchel oauth tokens", sha256.Size)
	if err != nil {
		return tokenKey{}, fmt.Errorf("derive token key: %w", err)
	}
	return tokenKey{r.ID, key}, nil
}

// newestKey returns the key for a new generation. It creates a new key if the newest one has
// reached saltLifetime.
func (s *Store) newestKey(tx *gorm.DB, now time.Time) (tokenKey, error) {
	var rows []tokenKeyRow
	if err := tx.Order("id DESC").Limit(1).Find(&rows).Error; err != nil {
		return tokenKey{}, fmt.Errorf("look up token key: %w", err)
	}
	if len(rows) == 0 || now.UnixMilli() >= rows[0].Created+saltLifetime.Milliseconds() {
		salt := make([]byte, sha256.Size)
		rand.Read(salt) // returns no error: crypto/rand.Read ends the program instead
		r := tokenKeyRow{Salt: salt, Created: now.UnixMilli()}
		if err := tx.Create(&r).Error; err != nil {
			return tokenKey{}, fmt.Errorf("make token key: %w", err)
		}
		rows = []tokenKeyRow{r}
	}
	return s.deriveKey(rows[0])
}

// keyByID returns the key with an id; ok is false if it was deleted.
func (s *Store) keyByID(tx *gorm.DB, id int64) (k tokenKey, ok bool, err error) {
	var rows []tokenKeyRow
	if err := tx.Where("id = ?", id).Find(&rows).Error; err != nil {
		return tokenKey{}, false, fmt.Errorf("look up token key: %w", err)
	}
	if len(rows) == 0 {
		return tokenKey{}, false, nil
	}
	k, err = s.deriveKey(rows[0])
	return k, err == nil, err
}

// mac returns the HMAC of the parts. Different parts give different input, because no part
// contains the line break between them.
func (k tokenKey) mac(what, grant string, generation int64, scopes string) []byte {
	h := hmac.New(sha256.New, k.key)
	fmt.Fprintf(h, "%s\n%s\n%d\n%s", what, grant, generation, scopes)
	return h.Sum(nil)
}

// access returns the access token of a generation for these scopes. Equal scopes give the
// same token, and different scopes give different tokens.
func (k tokenKey) access(grant string, generation int64, scopes string) auth.Secret {
	return auth.SecretOf(auth.KindAccess, k.mac("access", grant, generation, scopes))
}

// refresh returns the refresh token of a generation. The token contains its grant, so that
// the server recognizes an old token without storing it.
func (k tokenKey) refresh(grant string, generation int64) (auth.Secret, error) {
	id, err := idBytes(grant)
	if err != nil {
		return auth.Secret{}, err
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, refreshBytes), uint64(k.id))
	b = binary.BigEndian.AppendUint64(append(b, id...), uint64(generation))
	return auth.SecretOf(auth.KindRefresh, append(b, k.mac("refresh", grant, generation, "")...)), nil
}

// presented is a client's refresh token that is not verified yet.
type presented struct {
	keyID      int64
	grant      string
	generation int64
	mac, hash  []byte
}

const grantPrefix = "g_"

func parseRefresh(token string) (p presented, ok bool) {
	secret, b, err := auth.ParseSecret(auth.KindRefresh, token)
	if err != nil || len(b) != refreshBytes {
		return presented{}, false
	}
	p = presented{
		keyID: int64(binary.BigEndian.Uint64(b)), grant: grantPrefix + idEncoding().EncodeToString(b[8:24]),
		generation: int64(binary.BigEndian.Uint64(b[24:32])), mac: b[32:], hash: hashOf(secret),
	}
	return p, p.generation > 0
}

// genuine reports whether this server created the token. The hash of the family's newest
// token also proves it, so that this token stays valid after a change of the server's key.
func (s *Store) genuine(tx *gorm.DB, p presented, f familyRow) (bool, error) {
	if p.generation == f.Generation && subtle.ConstantTimeCompare(p.hash, f.Hash) == 1 {
		return true, nil
	}
	k, ok, err := s.keyByID(tx, p.keyID)
	if err != nil || !ok {
		return false, err
	}
	return hmac.Equal(p.mac, k.mac("refresh", p.grant, p.generation, "")), nil
}

// idEncoding returns the encoding in which package space writes the 16 bytes of an id.
func idEncoding() *base32.Encoding {
	return base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
}

func idBytes(grant string) ([]byte, error) {
	if len(grant) > len(grantPrefix) {
		if b, err := idEncoding().DecodeString(grant[len(grantPrefix):]); err == nil && len(b) == 16 {
			return b, nil
		}
	}
	return nil, fmt.Errorf("grant id %q", grant)
}

// issue returns the tokens of the family's generation. It stores the access token. If the store
// already has this access token and it has expired, the token becomes valid again.
func (s *Store) issue(tx *gorm.DB, k tokenKey, f familyRow, g grantRow, scopes []space.Scope, role space.Role, now time.Time) (auth.Tokens, error) {
	list := auth.ScopeList(scopes)
	access := k.access(f.GrantID, f.Generation, list)
	refresh, err := k.refresh(f.GrantID, f.Generation)
	if err != nil {
		return auth.Tokens{}, err
	}
	var expires int64
	// The hash is not the first value, because gorm treats bytes after a parenthesis as a
	// list.
	err = tx.Raw(`INSERT INTO auth_tokens (grant_id, hash, generation, scopes, created, expires) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (hash) DO UPDATE SET expires = CASE WHEN auth_tokens.expires > ? THEN auth_tokens.expires ELSE excluded.expires END
		RETURNING expires`, f.GrantID, hashOf(access), f.Generation, list, now.UnixMilli(), now.Add(s.o.AccessLifetime).UnixMilli(), now.UnixMilli()).
		Scan(&expires).Error
	if err != nil {
		return auth.Tokens{}, fmt.Errorf("store access token: %w", err)
	}
	return auth.Tokens{
		Grant: space.GrantID(f.GrantID), Access: access, Expires: time.UnixMilli(expires).UTC(), Refresh: refresh,
		Scopes: auth.EffectiveScopes(scopes, role), Resource: g.Resource,
	}, nil
}
