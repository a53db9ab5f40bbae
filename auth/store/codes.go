package store

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

type codeRow struct {
	Hash                   []byte `gorm:"primaryKey"`
	ClientID, Name         string
	UserID, SpaceID        string
	Scopes, Resource       string
	RedirectURI            string `gorm:"column:redirect_uri"`
	Challenge              string
	Created, Expires, Used int64
	GrantID                string // set when the code is redeemed
}

func (codeRow) TableName() string { return "auth_codes" }

// refuse returns the error for a client whose token request fails.
func refuse(cause error, format string, args ...any) error {
	return fault.Wrap(cause, fault.Invalid, format, args...)
}

// CreateCode stores a person's consent, and returns the authorization code for it. It keeps only
// the scopes that the person's role allows. The error is a fault.NotFound if the user or the space
// does not exist or the user is not a member. It is a fault.Forbidden if the user is suspended
// or the role allows none of the scopes, and a fault.Invalid for a malformed consent.
func (s *Store) CreateCode(ctx context.Context, c auth.Consent) (auth.Secret, error) {
	if _, bad, ok := space.ParseScopes(auth.ScopeList(c.Scopes)); !ok {
		return auth.Secret{}, fault.New(fault.Invalid, "A grant needs the scopes read, write or both; got %q.", short(bad))
	}
	switch {
	case !storable(c.Client + c.RedirectURI + c.Resource + c.Challenge):
		return auth.Secret{}, fault.New(fault.Invalid, "The request has bytes that are not valid text.")
	case c.Client == "" || len(c.Client) > maxClientID, c.RedirectURI == "" || len(c.RedirectURI) > maxRedirectURI, c.Resource == "" || len(c.Resource) > maxRedirectURI:
		return auth.Secret{}, fault.New(fault.Invalid, "The request needs a client, a redirect URI and a resource of at most %d bytes each.", maxRedirectURI)
	case len(c.Challenge) != base64.RawURLEncoding.EncodedLen(sha256.Size):
		return auth.Secret{}, fault.New(fault.Invalid, "The code challenge is not a valid S256 challenge.")
	}
	now := s.now()
	secret := auth.NewSecret(auth.KindCode)
	row := codeRow{
		Hash: hashOf(secret), ClientID: c.Client, Name: clean(c.Name, 200), UserID: string(c.User), SpaceID: string(c.Space), Resource: c.Resource,
		RedirectURI: c.RedirectURI, Challenge: c.Challenge, Created: database.Millis(now), Expires: database.Millis(now.Add(s.o.CodeLifetime)),
	}
	err := s.db.Transact(ctx, func(tx *gorm.DB) error {
		u, err := s.lockActive(tx, c.User)
		if err != nil {
			return err
		}
		var m memberRow
		if err := tx.Where("space_id = ? AND user_id = ?", lookup(row.SpaceID), u.ID).Take(&m).Error; err != nil {
			return notFound(err, "%s is not a member of that space.", u.Name)
		}
		scopes := auth.EffectiveScopes(inOrderOfScopes(c.Scopes), space.Role(m.Role))
		if len(scopes) == 0 {
			return fault.New(fault.Forbidden, "%s is a %s of the space, so a client can only have the scope read.", u.Name, m.Role)
		}
		row.Scopes = auth.ScopeList(scopes)
		if err := tx.Create(&row).Error; err != nil {
			return fmt.Errorf("create code: %w", err)
		}
		return s.record(tx, Actor{User: c.User, Via: "consent"}, "grant.consent", clean(c.Client, 200),
			map[string]any{"space": c.Space, "scopes": row.Scopes, "name": row.Name})
	})
	if err != nil {
		return auth.Secret{}, err
	}
	return secret, nil
}

// inOrderOfScopes returns each scope once, in a fixed order, so that equal sets have equal
// texts.
func inOrderOfScopes(scopes []space.Scope) []space.Scope {
	var out []space.Scope
	for _, s := range []space.Scope{space.ScopeRead, space.ScopeWrite} {
		if slices.Contains(scopes, s) {
			out = append(out, s)
		}
	}
	return out
}

// Redeem creates a grant and its first tokens from an authorization code. Only one call with
// the same code succeeds. A second redemption revokes the grant, because one of the two
// callers may have stolen the code (RFC 6749 section 4.1.2). If a request has a wrong client,
// redirect URI, verifier or resource, the code stays valid for the right client.
//
// If Redeem refuses the request, the error is a fault.Invalid that wraps auth.ErrInvalidGrant
// or auth.ErrInvalidTarget.
func (s *Store) Redeem(ctx context.Context, r auth.Redemption) (auth.Tokens, error) {
	hash, ok := parseHash(auth.KindCode, r.Code)
	if !ok {
		return auth.Tokens{}, errUnknownCode()
	}
	// This read is outside of a transaction, so that a caller without a valid code delays
	// no writer.
	var user string
	if err := s.db.Read(ctx).Raw("SELECT user_id FROM auth_codes WHERE hash = ?", hash).Scan(&user).Error; err != nil {
		return auth.Tokens{}, readError(ctx, err)
	}
	if user == "" {
		return auth.Tokens{}, errUnknownCode()
	}
	var out auth.Tokens
	var refused error // the error for the client, returned after the commit to keep the revocation
	err := s.db.Transact(ctx, func(tx *gorm.DB) error {
		u, err := s.lockHolder(tx, user)
		if err != nil {
			return err
		}
		// Read the code under the user's lock. No other redemption of the user is in
		// progress now.
		var c codeRow
		if err := tx.Where("hash = ?", hash).Take(&c).Error; err != nil {
			if errors.Is(err, gorm.ErrRecordNotFound) {
				return errUnknownCode()
			}
			return fmt.Errorf("look up code: %w", err)
		}
		switch {
		case subtle.ConstantTimeCompare(c.Hash, hash) != 1:
			return errUnknownCode()
		case c.ClientID != r.Client:
			return refuse(auth.ErrInvalidGrant, "The code was given to another client.")
		case c.Used != 0:
			refused, err = s.reused(tx, c)
			return err
		}
		if err := c.check(r, s.now().UnixMilli()); err != nil {
			return err
		}
		out, err = s.firstTokens(tx, c, u)
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

func errUnknownCode() error {
	return refuse(auth.ErrInvalidGrant, "The code is not known here, or has expired; begin again.")
}

// lockHolder calls lockActive for a token request. Its errors for a removed or suspended user
// do not name the user.
func (s *Store) lockHolder(tx *gorm.DB, id string) (userRow, error) {
	u, err := s.lockActive(tx, space.UserID(id))
	switch fault.CodeOf(err) {
	case fault.NotFound:
		return u, refuse(auth.ErrInvalidGrant, "The code or token is not known here; begin again.")
	case fault.Forbidden:
		return u, refuse(auth.ErrInvalidGrant, "The user of this grant can no longer use this server.")
	}
	return u, err
}

// check verifies that the code has not expired, and that the request has the code's redirect
// URI, verifier and resource.
func (c codeRow) check(r auth.Redemption, now int64) error {
	switch {
	case now >= c.Expires:
		return refuse(auth.ErrInvalidGrant, "The code has expired; begin again.")
	case r.RedirectURI != c.RedirectURI:
		return refuse(auth.ErrInvalidGrant, "The redirect URI is not the one to which the code was sent.")
	case !verifies(r.Verifier, c.Challenge):
		return refuse(auth.ErrInvalidGrant, "The code verifier does not fit the code challenge.")
	case r.Resource != "" && r.Resource != c.Resource:
		return refuse(auth.ErrInvalidTarget, "The resource is not the one that was granted.")
	}
	return nil
}

// verifies reports whether a PKCE verifier has the form of RFC 7636 section 4.1 and matches
// the S256 challenge.
func verifies(verifier, challenge string) bool {
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	for i := range len(verifier) {
		c := verifier[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~') {
			return false
		}
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}

// reused revokes the grant of a code that is redeemed again. refused is the error for the
// client.
func (s *Store) reused(tx *gorm.DB, c codeRow) (refused, err error) {
	n, err := s.revokeGrants(tx, "id = ?", c.GrantID)
	if err == nil && n > 0 {
		err = s.record(tx, Actor{User: space.UserID(c.UserID), Via: "client"}, "code.reuse", c.GrantID, map[string]any{"client": clean(c.ClientID, 200)})
	}
	return refuse(auth.ErrInvalidGrant, "The code was already used, so its grant was revoked. Begin again."), err
}

// firstTokens marks the code as used, and creates its grant and the first tokens.
func (s *Store) firstTokens(tx *gorm.DB, c codeRow, u userRow) (auth.Tokens, error) {
	var m memberRow
	if err := tx.Where("space_id = ? AND user_id = ?", c.SpaceID, u.ID).Take(&m).Error; err != nil {
		if errors.Is(err, gorm.ErrRecordNotFound) {
			return auth.Tokens{}, refuse(auth.ErrInvalidGrant, "The user is no longer a member of the space.")
		}
		return auth.Tokens{}, fmt.Errorf("look up member: %w", err)
	}
	now := s.now()
	g := grantRow{
		ID: string(space.NewGrantID()), UserID: u.ID, SpaceID: c.SpaceID, Scopes: c.Scopes, Name: c.Name, Created: now.UnixMilli(),
		Expires: s.grantEnd(now), Kind: "oauth", ClientID: c.ClientID, Resource: c.Resource,
	}
	done := tx.Exec("UPDATE auth_codes SET used = ?, grant_id = ? WHERE hash = ? AND used = 0", now.UnixMilli(), g.ID, c.Hash)
	if done.Error != nil {
		return auth.Tokens{}, fmt.Errorf("use code: %w", done.Error)
	}
	if done.RowsAffected != 1 { // the client was deleted meanwhile
		return auth.Tokens{}, errUnknownCode()
	}
	k, err := s.newestKey(tx, now)
	if err != nil {
		return auth.Tokens{}, err
	}
	f := familyRow{GrantID: g.ID, Generation: 1, KeyID: k.id, Rotated: now.UnixMilli(), Expires: now.Add(s.o.RefreshLifetime).UnixMilli()}
	first, err := k.refresh(f.GrantID, f.Generation)
	if err != nil {
		return auth.Tokens{}, err
	}
	f.Hash = hashOf(first)
	for _, row := range []any{&g, &f} {
		if err := tx.Create(row).Error; err != nil {
			return auth.Tokens{}, fmt.Errorf("create grant: %w", err)
		}
	}
	t, err := s.issue(tx, k, f, g, splitScopes(g.Scopes), space.Role(m.Role), now)
	if err != nil {
		return auth.Tokens{}, err
	}
	if err := touchClient(tx, c.ClientID, now); err != nil {
		return auth.Tokens{}, err
	}
	return t, s.record(tx, Actor{User: space.UserID(u.ID), Via: "client"}, "grant.create", g.ID,
		map[string]any{"kind": g.Kind, "client": clean(g.ClientID, 200), "name": g.Name, "space": g.SpaceID, "scopes": g.Scopes})
}

// grantEnd returns when a grant expires if its client gets its last tokens now.
func (s *Store) grantEnd(now time.Time) int64 {
	return now.Add(max(s.o.RefreshLifetime, s.o.AccessLifetime)).UnixMilli()
}
