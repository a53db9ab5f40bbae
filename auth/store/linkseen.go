package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"satchel/internal/database"
	"satchel/internal/fault"
)

const (
	// maxUnseen bounds the notices that are counted and put away at once.
	maxUnseen = 1000
	// settled is after how long any session of the person puts a notice away. Who
	// recovered their account by a link may have nothing that they had before, and
	// must not see it for ever; who did not ask for it had a month to come by.
	settled = 30 * day
)

// Why a session cannot put notices away.
const (
	// StaysLink: it began with a one-time link, as that of whoever made the link would.
	StaysLink = "link"
	// StaysNew: it began with a passkey, an account elsewhere or an address that was
	// added after somebody came in by such a link, who could have added it: by any of the
	// last 30 days, since it tells nothing of the next one that this one was put away.
	StaysNew = "new"
)

// Unseen is what a person has not put away.
type Unseen struct {
	Links []LinkNotice // as of LinkNotices
	More  int          // that Links leaves out, of at most 1000
	// AsOf is the last time at which any of them was made or used, for SeenLinks.
	AsOf time.Time
	// Stays is why the session cannot put them away; empty where it can. Settled are
	// those that are so old that it can all the same.
	Stays   string
	Settled int
	// Until is from when on a session that began like this one puts them all away, where
	// no other link is made or used; zero where it can now.
	Until time.Time
}

// UnseenLinks returns at most so many notices that the user of a session has not put
// away.
func (s *Store) UnseenLinks(ctx context.Context, in Session, limit int) (Unseen, error) {
	// Before the list, so that a later one is not among those that were shown.
	var sum struct{ N, AsOf, Settled int64 }
	old := s.now().Add(-settled).UnixMilli()
	err := s.db.Read(ctx).Raw(`SELECT COUNT(*) AS n, COALESCE(MAX(CASE WHEN used > created THEN used ELSE created END), 0) AS as_of,
		COALESCE(SUM(CASE WHEN created <= ? AND used <= ? THEN 1 ELSE 0 END), 0) AS settled
		FROM (SELECT created, used FROM auth_link_notices WHERE user_id = ? AND seen < state ORDER BY state DESC, created DESC, id LIMIT ?) t`,
		old, old, lookup(in.User), maxUnseen).Scan(&sum).Error
	if err != nil || sum.N == 0 {
		return Unseen{}, wrap("count what is told of links", err)
	}
	u := Unseen{AsOf: database.Time(sum.AsOf), Settled: int(sum.Settled)}
	var last time.Time
	if u.Stays, last, err = s.stays(s.db.Read(ctx), in); err != nil {
		return Unseen{}, err
	}
	switch u.Stays {
	case StaysLink:
		u.Until = u.AsOf.Add(settled)
	case StaysNew:
		u.Until = last.Add(settled)
		if u.AsOf.Before(last) {
			u.Until = u.AsOf.Add(settled)
		}
	}
	u.Links, err = s.readNotices(ctx, "n.user_id = ? AND n.seen < n.state ORDER BY n.state DESC, n.created DESC, n.id LIMIT ?", lookup(in.User), limit)
	u.More = max(0, int(sum.N)-len(u.Links))
	return u, err
}

// stays tells why a session cannot put notices away, and of StaysNew when the last link
// was used that is the reason.
func (s *Store) stays(tx *gorm.DB, in Session) (string, time.Time, error) {
	if in.Method == "link" {
		return StaysLink, time.Time{}, nil
	}
	if in.WayAdded.IsZero() {
		return "", time.Time{}, nil
	}
	var last int64
	err := tx.Raw("SELECT COALESCE(MAX(used), 0) FROM auth_link_notices WHERE user_id = ? AND seen <> ? AND state = ? AND used <= ? AND used > ?",
		lookup(in.User), linkOwn, linkUsed, in.WayAdded.UnixMilli(), s.now().Add(-settled).UnixMilli()).Scan(&last).Error
	if err != nil || last == 0 {
		return "", time.Time{}, wrap("look for links that were used", err)
	}
	return StaysNew, database.Time(last), nil
}

// SeenLinks puts away what the user of a session was shown as UnseenLinks had it: one
// that was made or used after asOf stays. The error is a fault.Forbidden where the
// session may put none of it away; see Unseen.Stays.
func (s *Store) SeenLinks(ctx context.Context, in Session, asOf time.Time) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		stays, _, err := s.stays(tx, in)
		if err != nil {
			return err
		}
		until := asOf.UnixMilli()
		if stays != "" {
			until = min(until, s.now().Add(-settled).UnixMilli())
		}
		// The outer condition is asked of a row again that another transaction changes
		// meanwhile, and the inner one is not.
		done := tx.Exec(`UPDATE auth_link_notices SET seen = state WHERE seen < state AND created <= ? AND used <= ? AND id IN
			(SELECT id FROM auth_link_notices WHERE user_id = ? AND seen < state AND created <= ? AND used <= ? ORDER BY state DESC, created DESC, id LIMIT ?)`,
			until, until, lookup(in.User), until, until, maxUnseen)
		switch {
		case done.Error != nil:
			return fmt.Errorf("put notices away: %w", done.Error)
		case done.RowsAffected == 0 && stays == StaysLink:
			return fault.New(fault.Forbidden, "You came in by a one-time link, and so could whoever made it. If that was you, nothing is to be done: this can be put away 30 days after it, or at once where you sign in with what you had before, if you had anything.")
		case done.RowsAffected == 0 && stays != "":
			return fault.New(fault.Forbidden, "You signed in with what was added after such a link was used, and whoever used it could have added it. If that was you, nothing is to be done: this can be put away 30 days after it, or at once where you sign in with what you had before, if you had anything.")
		case done.RowsAffected == 0:
			return nil
		}
		return s.record(tx, Actor{User: in.User, Via: "web"}, "link.seen", in.ID, map[string]any{"user": in.User, "links": done.RowsAffected})
	})
}
