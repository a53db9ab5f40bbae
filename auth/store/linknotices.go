package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/internal/database"
	"satchel/internal/space"
)

// States of a notice. In the column seen, linkOwn marks a link that the server's only user
// probably created themself; see LinkNotice.Own. Other values in that column have no meaning.
const (
	linkMade = 1
	linkUsed = 2
	linkOwn  = 3
)

type linkNoticeRow struct {
	ID             string `gorm:"primaryKey"`
	Hash           []byte
	UserID, ByUser string
	Created        int64
	Expires        int64
	Used           int64
	State, Seen    int64
}

func (linkNoticeRow) TableName() string { return "auth_link_notices" }

// LinkNotice notifies a person of a one-time link to their account. Somebody else created
// the link, on the pages or on the server's command line.
type LinkNotice struct {
	ID   string
	User space.UserID
	// By and ByName are the creator's id and name. Both are empty for the command line.
	By     space.UserID
	ByName string
	// Expires is the end of the link's validity. Used is zero if nobody used it.
	Created, Expires, Used time.Time
	// Own reports whether the link was created on the command line of a server with only
	// one user. Only the page Account shows such a link.
	Own bool
}

// noticeOfLink adds the notice of a new link. If a server has only one user, noticeOfLink
// assumes that this person uses its command line.
func noticeOfLink(tx *gorm.DB, row linkRow) error {
	if row.Method != "link" || row.ByUser == row.UserID {
		return nil
	}
	n := linkNoticeRow{ID: newID("ln_"), Hash: row.Hash, UserID: row.UserID, ByUser: row.ByUser, Created: row.Created, Expires: row.Expires, State: linkMade}
	if row.ByUser == "" {
		var others int64
		if err := tx.Model(&userRow{}).Where("id <> ? AND removed = 0", row.UserID).Limit(1).Count(&others).Error; err != nil {
			return fmt.Errorf("look for other users: %w", err)
		}
		if others == 0 {
			n.Seen = linkOwn
		}
	}
	return wrap("note a link", tx.Create(&n).Error)
}

// endNotices marks the notices of a user's unused links as ended.
func endNotices(tx *gorm.DB, user string, now int64) error {
	err := tx.Exec("UPDATE auth_link_notices SET expires = ? WHERE user_id = ? AND state = ? AND expires > ?", now, user, linkMade, now).Error
	return wrap("note the end of links", err)
}

// noticeOfUse marks the notice of a link as used. It adds the notice if the link is older
// than the table of notices.
func noticeOfUse(tx *gorm.DB, row linkRow, now int64) error {
	var known int64
	if err := tx.Model(&linkNoticeRow{}).Where("hash = ?", row.Hash).Count(&known).Error; err != nil {
		return fmt.Errorf("look up what is told of a link: %w", err)
	}
	if known == 0 {
		if err := noticeOfLink(tx, row); err != nil {
			return err
		}
	}
	err := tx.Exec("UPDATE auth_link_notices SET state = ?, used = ? WHERE hash = ?", linkUsed, now, row.Hash).Error
	return wrap("note the use of a link", err)
}

// endLinksOf permanently ends the unused links of a creator who may no longer create links, and
// marks the notices of these links as ended.
func (s *Store) endLinksOf(tx *gorm.DB, maker string) error {
	now := s.now().UnixMilli()
	for _, stmt := range []string{
		"UPDATE auth_links SET expires = ? WHERE by_user = ? AND used = 0 AND expires > ?",
		"UPDATE auth_link_notices SET expires = ? WHERE by_user = ? AND state = 1 AND expires > ?",
	} {
		if err := tx.Exec(stmt, now, maker, now).Error; err != nil {
			return fmt.Errorf("end links of a maker: %w", err)
		}
	}
	return nil
}

const noticeColumns = `SELECT n.id, n.user_id, n.by_user, n.created, n.expires, n.used, n.state, n.seen,
	CASE WHEN m.removed = 0 THEN m.name ELSE COALESCE(m.name || ' (removed)', '') END AS by_name
FROM auth_link_notices n LEFT JOIN auth_users m ON m.id = n.by_user WHERE `

func (s *Store) readNotices(ctx context.Context, where string, args ...any) ([]LinkNotice, error) {
	var rows []struct {
		Row    linkNoticeRow `gorm:"embedded"`
		ByName string
	}
	if err := s.db.Read(ctx).Raw(noticeColumns+where, args...).Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("read what is told of links: %w", err)
	}
	out := make([]LinkNotice, len(rows))
	for i, row := range rows {
		r := row.Row
		out[i] = LinkNotice{
			ID: r.ID, User: space.UserID(r.UserID), By: space.UserID(r.ByUser), ByName: row.ByName,
			Created: database.Time(r.Created), Expires: database.Time(r.Expires), Used: database.Time(r.Used),
			Own: r.Seen == linkOwn,
		}
	}
	return out, nil
}

// LinkNotices returns at most limit notices of a user. Used links come before unused ones, so
// that newer unused links cannot hide them. Each group begins with the newest link.
func (s *Store) LinkNotices(ctx context.Context, user space.UserID, limit int) ([]LinkNotice, error) {
	return s.readNotices(ctx, "n.user_id = ? ORDER BY n.state DESC, n.created DESC, n.id LIMIT ?", lookup(user), limit)
}

// noticeTime is how long the page Home shows a notice after its link was created or used.
// Nobody can dismiss a notice, because a person who signed in with the link could dismiss it too.
const noticeTime = 30 * day

// RecentLinks returns at most limit notices of links that were created or used in the last 30
// days, in the order of LinkNotices. It omits notices with Own. more is the number of further
// notices.
func (s *Store) RecentLinks(ctx context.Context, user space.UserID, limit int) (list []LinkNotice, more int, err error) {
	const recent = "n.user_id = ? AND n.seen <> ? AND (n.created > ? OR n.used > ?)"
	since := s.now().Add(-noticeTime).UnixMilli()
	args := []any{lookup(user), linkOwn, since, since}
	var n int
	err = s.db.Read(ctx).Raw("SELECT COUNT(*) FROM auth_link_notices n WHERE "+recent, args...).Scan(&n).Error
	if err != nil || n == 0 {
		return nil, 0, wrap("count recent links", err)
	}
	list, err = s.readNotices(ctx, recent+" ORDER BY n.state DESC, n.created DESC, n.id LIMIT ?", append(args, limit)...)
	return list, n - len(list), err
}

// CountLinkNotices returns the number of a user's notices.
func (s *Store) CountLinkNotices(ctx context.Context, user space.UserID) (n int64, err error) {
	err = s.db.Read(ctx).Model(&linkNoticeRow{}).Where("user_id = ?", lookup(user)).Count(&n).Error
	return n, wrap("count what is told of links", err)
}

// NoticeOf returns the notice of a link. ok is false if the link has none.
func (s *Store) NoticeOf(ctx context.Context, link string) (n LinkNotice, ok bool, err error) {
	hash, ok := parseHash(auth.KindLogin, link)
	if !ok {
		return LinkNotice{}, false, nil
	}
	all, err := s.readNotices(ctx, "n.hash = ?", hash)
	if err != nil || len(all) == 0 {
		return LinkNotice{}, false, err
	}
	return all[0], true, nil
}
