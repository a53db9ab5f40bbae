package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// maxMailed is the maximum number of open links that were mailed to one user in the last 15
// minutes. Anybody who knows an address can request mails to it, and they must not flood the
// person. Older mailed links stay valid, because the person may be waiting for one of them.
const maxMailed = 5

type linkRow struct {
	Hash                   []byte `gorm:"primaryKey"`
	UserID, Method         string
	Created, Expires, Used int64
	// ByUser is the admin who created the link. It is empty if no user did.
	ByUser string
}

func (linkRow) TableName() string { return "auth_links" }

// CreateLink creates a one-time link with which a user signs in. method is "link" for a link
// that a person hands over, or "mail". A new "link" ends the older ones of the user. If the
// actor is a user, they must be an admin, and the link ends when they no longer are. The
// error is a fault.NotFound if there is no such user, a fault.Forbidden if the user is
// suspended or the actor is not an admin, and a fault.Limited if maxMailed is reached.
func (s *Store) CreateLink(ctx context.Context, by Actor, user space.UserID, method string, lifetime time.Duration) (auth.Secret, error) {
	if method != "link" && method != "mail" || lifetime <= 0 {
		return auth.Secret{}, fmt.Errorf("a link of method %q for %v", method, lifetime)
	}
	now := s.now()
	secret := auth.NewSecret(auth.KindLogin)
	row := linkRow{Hash: hashOf(secret), UserID: string(user), Method: method, Created: database.Millis(now), Expires: database.Millis(now.Add(lifetime))}
	if method == "link" {
		row.ByUser = string(by.User)
	}
	err := s.db.Transact(ctx, func(tx *gorm.DB) error {
		if row.ByUser != "" {
			if err := s.lockUsers(tx); err != nil {
				return err
			}
			if err := s.checkMaker(tx, row); err != nil {
				return err
			}
		}
		if _, err := s.lockActive(tx, user); err != nil {
			return err
		}
		if err := roomForLink(tx, row, now); err != nil {
			return err
		}
		if err := tx.Create(&row).Error; err != nil {
			return fmt.Errorf("create link: %w", err)
		}
		if err := noticeOfLink(tx, row); err != nil {
			return err
		}
		return s.record(tx, by, "link.create", row.UserID, map[string]any{"method": method, "expires": row.Expires})
	})
	if err != nil {
		return auth.Secret{}, err
	}
	return secret, nil
}

// checkMaker returns an error if the creator of a link is not an admin.
func (s *Store) checkMaker(tx *gorm.DB, row linkRow) error {
	if row.ByUser == "" {
		return nil
	}
	var admins int64
	err := tx.Model(&userRow{}).Where("id = ? AND admin AND removed = 0 AND suspended = 0", row.ByUser).Count(&admins).Error
	switch {
	case err != nil:
		return fmt.Errorf("look up who made a link: %w", err)
	case admins == 0:
		return fault.New(fault.Forbidden, "Only an admin can make links for others.")
	}
	return nil
}

// EndLink deletes a link that could not be delivered.
func (s *Store) EndLink(ctx context.Context, link auth.Secret) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		return wrap("end link", tx.Exec("DELETE FROM auth_links WHERE hash = ? AND used = 0", hashOf(link)).Error)
	})
}

// roomForLink ends the user's older links of method "link" if the new link has this method. For
// a mailed link, it returns an error if maxMailed is reached.
func roomForLink(tx *gorm.DB, row linkRow, now time.Time) error {
	if row.Method == "link" {
		err := tx.Exec("DELETE FROM auth_links WHERE user_id = ? AND method = ? AND used = 0", row.UserID, row.Method).Error
		if err != nil {
			return fmt.Errorf("end older links: %w", err)
		}
		return endNotices(tx, row.UserID, row.Created)
	}
	var open int64
	err := tx.Model(&linkRow{}).Where("user_id = ? AND method = ? AND used = 0 AND expires > ? AND created > ?", row.UserID, row.Method, now.UnixMilli(), now.Add(-15*time.Minute).UnixMilli()).Count(&open).Error
	if err != nil {
		return fmt.Errorf("count links: %w", err)
	}
	if open >= maxMailed {
		return fault.New(fault.Limited, "%d mailed links are open; use one of them.", open)
	}
	return nil
}

// PeekLink returns the user of a link without using it, because mail scanners also follow
// links. The errors are those of UseLink.
func (s *Store) PeekLink(ctx context.Context, secret string) (u User, method string, err error) {
	r, err := s.takeLink(s.db.Read(ctx), secret)
	if err != nil {
		return User{}, "", err
	}
	u, err = s.User(ctx, space.UserID(r.UserID))
	if err == nil && !u.Suspended.IsZero() {
		err = errSuspended(u.Name)
	}
	if err != nil {
		return User{}, "", err
	}
	return u, r.Method, nil
}

// UseLink uses a link, and returns the user who signs in with it. Only one call for a link
// succeeds. The error is a fault.NotFound if the link is unknown, was used or has expired,
// if its user was removed, or if its creator is no longer an admin. It is a fault.Forbidden
// if the user is suspended.
func (s *Store) UseLink(ctx context.Context, secret string) (u User, method string, err error) {
	err = s.db.Transact(ctx, func(tx *gorm.DB) error {
		r, err := s.takeLink(tx, secret)
		if err != nil {
			return err
		}
		row, err := s.lockActive(tx, space.UserID(r.UserID))
		if err != nil {
			return err
		}
		done := tx.Exec("UPDATE auth_links SET used = ? WHERE hash = ? AND used = 0", s.now().UnixMilli(), r.Hash)
		if done.Error != nil {
			return fmt.Errorf("use link: %w", done.Error)
		}
		if done.RowsAffected == 0 {
			return errLinkUsed()
		}
		u, method = row.user(), r.Method
		if err := noticeOfUse(tx, r, s.now().UnixMilli()); err != nil {
			return err
		}
		return s.record(tx, Actor{User: u.ID, Via: "web"}, "link.use", row.ID, map[string]any{"method": method})
	})
	if err != nil {
		return User{}, "", err
	}
	return u, method, nil
}

func errLinkUsed() error {
	return fault.New(fault.NotFound, "This link was already used; ask for a new one.")
}

func (s *Store) takeLink(tx *gorm.DB, secret string) (linkRow, error) {
	unknown := fault.New(fault.NotFound, "This server does not know the link, or a newer link has replaced it.")
	hash, ok := parseHash(auth.KindLogin, secret)
	if !ok {
		return linkRow{}, unknown
	}
	var r linkRow
	err := tx.Where("hash = ?", hash).Take(&r).Error
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return r, unknown
	case err != nil:
		return r, fmt.Errorf("look up link: %w", err)
	case r.Used != 0:
		return r, errLinkUsed()
	}
	err = s.checkMaker(tx, r)
	switch {
	case fault.CodeOf(err) == fault.Forbidden:
		err = fault.New(fault.NotFound, "This link has ended, because the person who created it is no longer an admin; ask for a new one.")
	case err == nil && s.now().UnixMilli() >= r.Expires:
		err = fault.New(fault.NotFound, "This link has expired; ask for a new one.")
	}
	return r, err
}
