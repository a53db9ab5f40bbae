package store

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func errUnknownRefresh() error {
	return refuse(auth.ErrInvalidGrant, "The refresh token is not known here; begin again.")
}

// Refresh exchanges a refresh token for a new one and an access token.
//
// Real clients use one token in parallel, and again after a lost answer. So within
// Options.RefreshReuse of the first use, Refresh returns the same new token again. If the new
// token was used meanwhile, Refresh returns the family's newest tokens, so that every process
// of the client can continue. After RefreshReuse, Refresh treats the token as stolen, and
// revokes the grant. If the client or the resource is wrong, or the scopes exceed the
// grant, Refresh fails and changes nothing.
//
// If Refresh refuses the request, the error is a fault.Invalid that wraps auth.ErrInvalidGrant,
// auth.ErrInvalidTarget or auth.ErrInvalidScope.
func (s *Store) Refresh(ctx context.Context, r auth.RefreshRequest) (auth.Tokens, error) {
	p, ok := parseRefresh(r.Refresh)
	if !ok {
		return auth.Tokens{}, errUnknownRefresh()
	}
	// This read is outside of a transaction, so that a caller without a valid token delays
	// no writer.
	g, _, err := s.takeFamily(s.db.Read(ctx), p)
	if err != nil {
		return auth.Tokens{}, readError(ctx, err)
	}
	if g.ClientID != r.Client {
		return auth.Tokens{}, errUnknownRefresh()
	}
	var out auth.Tokens
	var refused error // the error for the client, returned after the commit to keep the revocation
	err = s.db.Transact(ctx, func(tx *gorm.DB) error {
		u, err := s.lockHolder(tx, g.UserID)
		if err != nil {
			return err
		}
		// Read the family again. No other refresh of the user is in progress now.
		g, f, err := readFamily(tx, p.grant)
		if err != nil {
			return err
		}
		role, err := s.checkRefresh(tx, r, g, f, u)
		if err != nil {
			return err
		}
		scopes := splitScopes(g.Scopes)
		if len(r.Scopes) > 0 {
			if scopes = inOrderOfScopes(r.Scopes); !within(r.Scopes, splitScopes(g.Scopes)) {
				return refuse(auth.ErrInvalidScope, "The client was granted %s.", g.Scopes)
			}
		}
		if p.generation < f.Generation {
			var same bool
			if same, err = s.mayRepeat(tx, p, f); err != nil {
				return err
			}
			if !same {
				refused, err = s.replayed(tx, g, p, f)
				return err
			}
			out, err = s.repeat(tx, g, f, scopes, role)
			return err
		}
		out, err = s.rotate(tx, g, f, p.generation+1, scopes, role)
		return err
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return auth.Tokens{}, err
	}
	return out, nil
}

func within(scopes, granted []space.Scope) bool {
	for _, s := range scopes {
		if !(space.Grant{Scopes: granted}).Has(s) {
			return false
		}
	}
	return true
}

// takeFamily reads the family of a refresh token, and verifies the token.
func (s *Store) takeFamily(tx *gorm.DB, p presented) (grantRow, familyRow, error) {
	g, f, err := readFamily(tx, p.grant)
	if err != nil {
		return g, f, err
	}
	ok, err := s.genuine(tx, p, f)
	if err == nil && !ok {
		err = errUnknownRefresh()
	}
	return g, f, err
}

func readFamily(tx *gorm.DB, grant string) (g grantRow, f familyRow, err error) {
	err = tx.Where("id = ?", grant).Take(&g).Error
	if err == nil {
		err = tx.Where("grant_id = ?", grant).Take(&f).Error
	}
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return g, f, errUnknownRefresh()
	case err != nil:
		return g, f, fmt.Errorf("look up grant: %w", err)
	}
	return g, f, nil
}

// checkRefresh verifies that the client may get tokens of the grant.
func (s *Store) checkRefresh(tx *gorm.DB, r auth.RefreshRequest, g grantRow, f familyRow, u userRow) (space.Role, error) {
	switch {
	case g.Revoked != 0:
		return "", refuse(auth.ErrInvalidGrant, "The grant was revoked; begin again.")
	case s.now().UnixMilli() >= f.Expires:
		return "", refuse(auth.ErrInvalidGrant, "The refresh token has expired; begin again.")
	case r.Resource != "" && r.Resource != g.Resource:
		return "", refuse(auth.ErrInvalidTarget, "The resource is not the one that was granted.")
	}
	var m memberRow
	err := tx.Where("space_id = ? AND user_id = ?", g.SpaceID, u.ID).Take(&m).Error
	if err != nil && !errors.Is(err, gorm.ErrRecordNotFound) {
		return "", fmt.Errorf("look up member: %w", err)
	}
	if len(auth.EffectiveScopes(splitScopes(g.Scopes), space.Role(m.Role))) == 0 {
		return "", refuse(auth.ErrInvalidGrant, "The user no longer has any of the granted rights; begin again.")
	}
	return space.Role(m.Role), nil
}

// mayRepeat reports whether a used refresh token was first used within RefreshReuse. The
// next generation began at that first use.
func (s *Store) mayRepeat(tx *gorm.DB, p presented, f familyRow) (bool, error) {
	began := f.Rotated
	if p.generation+1 < f.Generation {
		began = 0
		err := tx.Raw("SELECT COALESCE(MIN(created), 0) FROM auth_tokens WHERE grant_id = ? AND generation = ?", p.grant, p.generation+1).Scan(&began).Error
		if err != nil {
			return false, fmt.Errorf("look up generation: %w", err)
		}
	}
	return s.now().UnixMilli() < began+s.o.RefreshReuse.Milliseconds(), nil
}

// replayed revokes the grant of a refresh token that is used again. refused is the error
// for the client.
func (s *Store) replayed(tx *gorm.DB, g grantRow, p presented, f familyRow) (refused, err error) {
	if _, err = s.revokeGrants(tx, "id = ?", g.ID); err == nil {
		err = s.record(tx, Actor{User: space.UserID(g.UserID), Via: "client"}, "refresh.reuse", g.ID,
			map[string]any{"client": clean(g.ClientID, 200), "generation": p.generation, "newest": f.Generation})
	}
	return refuse(auth.ErrInvalidGrant, "The refresh token was used already; the grant is revoked. Begin again."), err
}

// repeat returns the newest tokens of a family again.
func (s *Store) repeat(tx *gorm.DB, g grantRow, f familyRow, scopes []space.Scope, role space.Role) (auth.Tokens, error) {
	k, ok, err := s.keyByID(tx, f.KeyID)
	if err != nil {
		return auth.Tokens{}, err
	}
	if ok {
		newest, err := k.refresh(f.GrantID, f.Generation)
		if err != nil {
			return auth.Tokens{}, err
		}
		if h := newest.Hash(); subtle.ConstantTimeCompare(h[:], f.Hash) == 1 {
			return s.issue(tx, k, f, g, scopes, role, s.now())
		}
	}
	// The server's key has changed, so the newest tokens cannot be derived again.
	return s.rotate(tx, g, f, f.Generation+1, scopes, role)
}

// rotate starts the given generation. This is the generation after f.Generation, unless the
// database was restored to an older state.
func (s *Store) rotate(tx *gorm.DB, g grantRow, f familyRow, generation int64, scopes []space.Scope, role space.Role) (auth.Tokens, error) {
	now := s.now()
	k, err := s.newestKey(tx, now)
	if err != nil {
		return auth.Tokens{}, err
	}
	next, err := k.refresh(f.GrantID, generation)
	if err != nil {
		return auth.Tokens{}, err
	}
	f = familyRow{GrantID: f.GrantID, Generation: generation, KeyID: k.id, Hash: hashOf(next), Rotated: now.UnixMilli(), Expires: now.Add(s.o.RefreshLifetime).UnixMilli()}
	if err := tx.Save(&f).Error; err != nil {
		return auth.Tokens{}, fmt.Errorf("rotate refresh token: %w", err)
	}
	if err := tx.Exec("UPDATE auth_grants SET expires = ? WHERE id = ?", s.grantEnd(now), g.ID).Error; err != nil {
		return auth.Tokens{}, fmt.Errorf("rotate refresh token: %w", err)
	}
	// A client that refreshes without end must not fill the database. Keep the rows that
	// mayRepeat needs, and the tokens that processes of the client may still use.
	err = tx.Exec("DELETE FROM auth_tokens WHERE grant_id = ? AND generation < ? AND created <= ?",
		g.ID, generation-keptGenerations, now.Add(-s.reuseWindow()).UnixMilli()).Error
	if err != nil {
		return auth.Tokens{}, fmt.Errorf("bound access tokens: %w", err)
	}
	if err := touchClient(tx, g.ClientID, now); err != nil {
		return auth.Tokens{}, err
	}
	return s.issue(tx, k, f, g, scopes, role, now)
}

// keptGenerations is the number of generations whose access tokens stay valid until they
// expire.
const keptGenerations = 16

func (s *Store) reuseWindow() time.Duration { return max(s.o.RefreshReuse, 0) }

// RevokeToken ends the grant of a client's access token or refresh token (RFC 7009). It
// does nothing for an unknown token, or a token of another client.
func (s *Store) RevokeToken(ctx context.Context, client, token string) error {
	p, isRefresh := parseRefresh(token)
	hash, isAccess := parseHash(auth.KindAccess, token)
	if !isRefresh && !isAccess {
		return nil
	}
	// This read is outside of a transaction, so that a caller without a valid token delays
	// no writer.
	var g grantRow
	var err error
	if isRefresh {
		g, _, err = s.takeFamily(s.db.Read(ctx), p)
	} else {
		err = s.db.Read(ctx).Where("id = (SELECT grant_id FROM auth_tokens WHERE hash = ?)", hash).Take(&g).Error
	}
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound), errors.Is(err, auth.ErrInvalidGrant):
		return nil
	case err != nil:
		return readError(ctx, err)
	case g.ClientID != client:
		return nil
	}
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		_, err = s.endGrant(tx, Actor{User: space.UserID(g.UserID), Via: "client"}, g)
		return err
	})
}

const accessQuery = `SELECT t.hash, t.scopes, t.expires, g.id, g.name, g.revoked, g.resource,
	u.id, u.name, u.display, u.email, u.admin, u.removed, u.suspended,
	s.id, s.name, m.role
FROM auth_tokens t
JOIN auth_grants g ON g.id = t.grant_id
JOIN auth_users u ON u.id = g.user_id
JOIN auth_spaces s ON s.id = g.space_id
LEFT JOIN auth_members m ON m.space_id = g.space_id AND m.user_id = g.user_id
WHERE t.hash = ?`

// VerifyAccess checks an access token for a resource, with one query; see auth.Verifier.
func (s *Store) VerifyAccess(ctx context.Context, bearer, resource string) (auth.Principal, error) {
	unknown := fault.New(fault.Unauthenticated, "This server does not know the token; it may have expired, or belong to another server.")
	hash, ok := parseHash(auth.KindAccess, bearer)
	if !ok {
		return auth.Principal{}, unknown
	}
	var r verifyRow
	var of string
	var role *string
	err := s.row(ctx, accessQuery, hash, &r.KeyHash, &r.Scopes, &r.Expires, &r.GrantID, &r.GrantName, &r.Revoked, &of,
		&r.UserID, &r.UserName, &r.Display, &r.Email, &r.Admin, &r.Removed, &r.Suspended, &r.SpaceID, &r.SpaceName, &role)
	if err != nil {
		return auth.Principal{}, verifyError(ctx, err, unknown)
	}
	if subtle.ConstantTimeCompare(r.KeyHash, hash) != 1 {
		return auth.Principal{}, unknown
	}
	if role != nil {
		r.Role = *role
	}
	now := s.now()
	p := r.principal()
	switch {
	case resource == "" || of != resource:
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The token is for another resource, not for this server.")
	case r.Removed != 0:
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The user of this token was removed.")
	case r.Suspended != 0:
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The user of this token can no longer use this server.")
	case r.Revoked != 0:
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The grant of this token was revoked; connect again.")
	case now.UnixMilli() >= r.Expires:
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The token has expired; refresh it.")
	case len(p.Scopes) == 0:
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The user of this token is no longer a member of its space.")
	}
	s.markUsed(p.Grant, now)
	return p, nil
}
