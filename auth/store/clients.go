package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/internal/database"
	"satchel/internal/fault"
)

// Limits of a client's data. maxRedirects is a number of redirect URIs; the others are in bytes.
const (
	maxClientID     = 2048
	maxRedirects    = 32
	maxRedirectURI  = 2048
	maxClientFields = 16 << 10
)

type clientRow struct {
	ID                string `gorm:"primaryKey"`
	Kind              string
	Name              string
	URI               string `gorm:"column:uri"`
	RedirectURIs      string `gorm:"column:redirect_uris"`
	Created, LastUsed int64
}

func (clientRow) TableName() string { return "auth_clients" }

func (r clientRow) client() (auth.Client, error) {
	c := auth.Client{
		ID: r.ID, Kind: auth.ClientKind(r.Kind), Name: r.Name, URI: r.URI,
		Created: database.Time(r.Created), LastUsed: usedSince(r.Created, r.LastUsed),
	}
	if err := json.Unmarshal([]byte(r.RedirectURIs), &c.RedirectURIs); err != nil {
		return auth.Client{}, fmt.Errorf("read client %s: %w", r.ID, err)
	}
	return c, nil
}

func (s *Store) newClient(c auth.Client, kind auth.ClientKind) (clientRow, error) {
	n := len(c.ID) + len(c.URI)
	long := len(c.RedirectURIs) > maxRedirects
	for _, u := range c.RedirectURIs {
		long = long || len(u) > maxRedirectURI
		n += len(u)
	}
	if c.ID == "" || !storable(c.ID) || len(c.ID) > maxClientID || long || n > maxClientFields {
		return clientRow{}, fault.New(fault.Invalid, "The client's data is too large: at most %d redirect URIs of %d bytes, and %d bytes in all, are allowed.", maxRedirects, maxRedirectURI, maxClientFields)
	}
	if c.RedirectURIs == nil {
		c.RedirectURIs = []string{}
	}
	uris, err := json.Marshal(c.RedirectURIs)
	if err != nil {
		return clientRow{}, fmt.Errorf("encode redirect URIs: %w", err)
	}
	return clientRow{
		ID: c.ID, Kind: string(kind), Name: clean(c.Name, 200), URI: clean(c.URI, maxRedirectURI), RedirectURIs: string(uris), Created: database.Millis(s.now()),
	}, nil
}

// RegisterClient stores a client that registered itself. If there are too many clients, it
// replaces the oldest idle one: otherwise somebody who registers many clients would keep
// others out until the next sweep. The error is a fault.Limited if no client is idle.
func (s *Store) RegisterClient(ctx context.Context, c auth.Client) error {
	row, err := s.newClient(c, auth.ClientRegistered)
	if err != nil {
		return err
	}
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		full, err := s.clientsFull(tx, time.Minute)
		if err == nil && full {
			// The cached count may include deleted clients, or a sweep may be due.
			if _, err = s.sweepClients(tx, s.now(), sweepBatch); err == nil {
				full, err = s.clientsFull(tx, 0)
			}
			if err == nil && full {
				full, err = s.crowdedOut(tx)
			}
		}
		if err != nil {
			return err
		}
		if full {
			f := fault.New(fault.Limited, "This server has reached its limit of registered clients; try again later.")
			f.RetryAfter = time.Hour
			return f
		}
		return s.addClient(tx, Actor{Via: "registration"}, "client.register", row)
	})
}

// undisturbed is how long other registrations cannot replace a new client. It gives a
// person time to sign in.
const undisturbed = time.Minute

// crowdedOut deletes the oldest idle client to make room for a new one. An idle client is older
// than undisturbed, never got a token and has no code. full reports whether no client is idle.
func (s *Store) crowdedOut(tx *gorm.DB) (full bool, err error) {
	done := tx.Exec(`DELETE FROM auth_clients WHERE id = (SELECT c.id FROM auth_clients c
		WHERE c.kind = ? AND c.last_used = 0 AND c.created < ? AND NOT EXISTS (SELECT 1 FROM auth_codes k WHERE k.client_id = c.id)
		ORDER BY c.created, c.id LIMIT 1)`, string(auth.ClientRegistered), s.now().Add(-undisturbed).UnixMilli())
	if done.Error != nil {
		return false, fmt.Errorf("make room for a client: %w", done.Error)
	}
	return done.RowsAffected == 0, nil
}

// clientCount caches the number of clients that registered themselves, because counting is
// slow. The cached count may be too high. It is too low only if other processes added clients.
type clientCount struct {
	n  int
	at time.Time // when the clients were counted
}

// clientsFull reports whether the limit of clients is reached. If it is not, clientsFull
// adds one to the cached count. If that count is older than old, it counts the clients again first.
func (s *Store) clientsFull(tx *gorm.DB, old time.Duration) (bool, error) {
	s.mu.Lock()
	c := s.clients
	s.mu.Unlock()
	if now := s.now(); c.at.IsZero() || now.Sub(c.at) >= old {
		if err := tx.Raw("SELECT COUNT(*) FROM auth_clients WHERE kind = ?", string(auth.ClientRegistered)).Scan(&c.n).Error; err != nil {
			return false, fmt.Errorf("count clients: %w", err)
		}
		c.at = now
	}
	full := c.n >= s.o.MaxClients
	if !full {
		c.n++
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = c
	return full, nil
}

func (s *Store) addClient(tx *gorm.DB, by Actor, action string, row clientRow) error {
	if err := tx.Create(&row).Error; err != nil {
		if database.IsDuplicate(err) {
			return fault.New(fault.Conflict, "There is already a client with this id.")
		}
		return fmt.Errorf("add client: %w", err)
	}
	return s.record(tx, by, action, clean(row.ID, 200), map[string]any{"name": clean(row.Name, 100)})
}

// CreateClient stores a client whose id an admin chose (a preset client), and sets its
// kind. The error is a fault.Conflict if the id is taken.
func (s *Store) CreateClient(ctx context.Context, by Actor, c auth.Client) error {
	row, err := s.newClient(c, auth.ClientPreset)
	if err != nil {
		return err
	}
	return s.db.Transact(ctx, func(tx *gorm.DB) error { return s.addClient(tx, by, "client.create", row) })
}

// Client returns a client that registered itself or that an admin created. The error is a
// fault.NotFound if there is no such client.
func (s *Store) Client(ctx context.Context, id string) (auth.Client, error) {
	var r clientRow
	err := s.db.Read(ctx).Where("id = ?", lookup(id)).Take(&r).Error
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return auth.Client{}, fault.New(fault.NotFound, "This server does not know the client; it must register again.")
	case err != nil:
		return auth.Client{}, fmt.Errorf("look up client: %w", err)
	}
	return r.client()
}

// Clients returns all clients that registered themselves or that an admin created, newest
// first.
func (s *Store) Clients(ctx context.Context) ([]auth.Client, error) {
	var rows []clientRow
	if err := s.db.Read(ctx).Order("created DESC, id").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list clients: %w", err)
	}
	out := make([]auth.Client, len(rows))
	for i, r := range rows {
		c, err := r.client()
		if err != nil {
			return nil, err
		}
		out[i] = c
	}
	return out, nil
}

// DeleteClient deletes a client and revokes all its grants. The id can also be the URL of a
// client's metadata document. The store has only grants of such a client. The error is a
// fault.NotFound if the store has neither the client nor a grant of it.
func (s *Store) DeleteClient(ctx context.Context, by Actor, id string) error {
	id = lookup(id)
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		var name string // for the audit log
		if err := tx.Raw("SELECT name FROM auth_clients WHERE id = ?", id).Scan(&name).Error; err != nil {
			return fmt.Errorf("look up client: %w", err)
		}
		gone := tx.Exec("DELETE FROM auth_clients WHERE id = ?", id)
		if gone.Error != nil {
			return fmt.Errorf("delete client: %w", gone.Error)
		}
		// Delete the codes first. This waits for a redemption in progress, so that the next
		// statement sees its grant.
		if err := tx.Exec("DELETE FROM auth_codes WHERE client_id = ? AND used = 0", id).Error; err != nil {
			return fmt.Errorf("delete codes: %w", err)
		}
		n, err := s.revokeGrants(tx, "client_id = ? AND client_id <> '' AND kind = 'oauth'", id)
		if err != nil {
			return err
		}
		if gone.RowsAffected+n == 0 {
			return fault.New(fault.NotFound, "There is no such client.")
		}
		return s.record(tx, by, "client.delete", clean(id, 200), map[string]any{"name": clean(name, 100), "grants_revoked": n})
	})
}

// touchClient records when a client got a token, to the hour.
func touchClient(tx *gorm.DB, id string, now time.Time) error {
	hour := now.Truncate(time.Hour).UnixMilli()
	return wrap("store time of last use", tx.Exec("UPDATE auth_clients SET last_used = ? WHERE id = ? AND last_used < ?", hour, id, hour).Error)
}
