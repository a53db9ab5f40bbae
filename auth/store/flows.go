package store

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"time"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/internal/database"
	"satchel/internal/fault"
)

const maxFlowBytes = 64 << 10

type flowRow struct {
	Hash    []byte `gorm:"primaryKey"`
	Kind    string
	Data    []byte
	Expires int64
}

func (flowRow) TableName() string { return "auth_flows" }

// PutFlow stores data of a sign-in in progress, such as a nonce. TakeFlow returns the data once,
// for the same kind and the returned secret. Anybody can start a sign-in, so the number of flows
// is limited. At the limit, a new flow replaces the one that expires first. The error is a
// fault.TooLarge if data is longer than 64 KiB.
func (s *Store) PutFlow(ctx context.Context, kind string, data []byte, lifetime time.Duration) (auth.Secret, error) {
	if len(data) > maxFlowBytes {
		return auth.Secret{}, fault.New(fault.TooLarge, "The sign-in has %d bytes to remember, and %d are allowed.", len(data), maxFlowBytes)
	}
	now := s.now()
	secret := auth.NewSecret(auth.KindFlow)
	box, err := flowBox(secret)
	if err != nil {
		return auth.Secret{}, err
	}
	sealed := box.Seal(nil, make([]byte, box.NonceSize()), data, []byte(kind))
	row := flowRow{Hash: hashOf(secret), Kind: kind, Data: sealed, Expires: database.Millis(now.Add(lifetime))}
	err = s.db.Transact(ctx, func(tx *gorm.DB) error {
		var n int
		if err := tx.Raw("SELECT COUNT(*) FROM auth_flows").Scan(&n).Error; err != nil {
			return fmt.Errorf("count flows: %w", err)
		}
		if over := n + 1 - s.o.MaxFlows; over > 0 {
			err := tx.Exec("DELETE FROM auth_flows WHERE hash IN (SELECT hash FROM auth_flows ORDER BY expires LIMIT ?)", over).Error
			if err != nil {
				return fmt.Errorf("bound flows: %w", err)
			}
		}
		return wrap("put flow", tx.Create(&row).Error)
	})
	if err != nil {
		return auth.Secret{}, err
	}
	return secret, nil
}

// TakeFlow deletes data that PutFlow stored, and returns it. The error is a fault.NotFound if
// the data was taken before, has expired, never existed or is of another kind.
func (s *Store) TakeFlow(ctx context.Context, kind, secret string) ([]byte, error) {
	return s.openFlow(kind, secret, func(hash []byte) (rows []flowRow, err error) {
		err = s.db.Transact(ctx, func(tx *gorm.DB) error {
			return tx.Raw("DELETE FROM auth_flows WHERE hash = ? AND kind = ? AND expires > ? RETURNING data", hash, kind, s.now().UnixMilli()).Scan(&rows).Error
		})
		return rows, wrap("take flow", err)
	})
}

// SeeFlow is like TakeFlow, but does not delete the data.
func (s *Store) SeeFlow(ctx context.Context, kind, secret string) ([]byte, error) {
	return s.openFlow(kind, secret, func(hash []byte) (rows []flowRow, err error) {
		err = s.db.Read(ctx).Where("hash = ? AND kind = ? AND expires > ?", hash, kind, s.now().UnixMilli()).Find(&rows).Error
		return rows, wrap("see flow", err)
	})
}

func (s *Store) openFlow(kind, secret string, find func(hash []byte) ([]flowRow, error)) ([]byte, error) {
	gone := fault.New(fault.NotFound, "This sign-in has expired or was already completed; start again.")
	flow, _, err := auth.ParseSecret(auth.KindFlow, secret)
	if err != nil {
		return nil, gone
	}
	rows, err := find(hashOf(flow))
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, gone
	}
	box, err := flowBox(flow)
	if err != nil {
		return nil, err
	}
	data, err := box.Open(nil, make([]byte, box.NonceSize()), rows[0].Data, []byte(kind))
	return data, wrap("open flow", err)
}

// flowBox returns the cipher for the data of a flow, such as a PKCE verifier. Its key comes
// from a secret that only the browser has, so a copy of the database does not reveal the
// data. Each key encrypts one text, so a nonce of zeros is safe.
func flowBox(secret auth.Secret) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(secret.Reveal()), nil, "satchel flow", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive flow key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("derive flow key: %w", err)
	}
	return cipher.NewGCM(block)
}
