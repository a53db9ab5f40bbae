package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/auth"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// maxInvitations is the maximum number of open invitations of one person.
const maxInvitations = 1000

// Invitation admits one person to the server, and to a space if it names one. The first
// person who accepts it uses it up.
type Invitation struct {
	ID          string // identifies the invitation in lists; not secret
	By          space.UserID
	ByName      string
	Note, Email string // written by the inviter; Email does not limit who may accept
	vouched     bool   // an admin or a command set Email
	Admin       bool   // the person becomes an admin
	// Space is empty for an invitation to the server only.
	Space     space.SpaceID
	SpaceName string
	Role      space.Role
	Created   time.Time
	Expires   time.Time
	Used      time.Time // zero if the invitation is open
	UsedBy    space.UserID
}

// NewInvitation is the input of CreateInvitation.
type NewInvitation struct {
	// By is the inviter. It is empty for a command, which has every right.
	By   space.UserID
	Note string
	// Email becomes the address of a new user without one, if an admin or a command created
	// the invitation. People who read an address's mail can sign in as its user.
	Email    string
	Admin    bool
	Space    space.SpaceID // empty for an invitation to the server only
	Role     space.Role    // Editor or Reader; empty if Space is empty
	Lifetime time.Duration
}

type invitationRow struct {
	ID                     string `gorm:"primaryKey"`
	Hash                   []byte
	ByUser, Note, Email    string
	Admin                  bool
	SpaceID, Role          string
	Created, Expires, Used int64
	UsedBy                 string
}

func (invitationRow) TableName() string { return "auth_invitations" }

// namedInvitation is an invitation's row with the names for its ids.
type namedInvitation struct {
	Row                       invitationRow `gorm:"embedded"`
	ByName, SpaceName, OwnsIt string
	ByAdmin                   bool
	ByGone                    int64
}

func (r namedInvitation) invitation() Invitation {
	i := r.Row
	return Invitation{
		ID: i.ID, By: space.UserID(i.ByUser), ByName: r.ByName, Note: i.Note, Email: i.Email, Admin: i.Admin,
		vouched: i.ByUser == "" || r.ByAdmin,
		Space:   space.SpaceID(i.SpaceID), SpaceName: r.SpaceName, Role: space.Role(i.Role), Created: database.Time(i.Created),
		Expires: database.Time(i.Expires), Used: database.Time(i.Used), UsedBy: space.UserID(i.UsedBy),
	}
}

// mayInvite reports whether the inviter still has the right to this invitation.
func (r namedInvitation) mayInvite() bool {
	switch {
	case r.Row.SpaceID != "" && r.OwnsIt == "": // the space was deleted
		return false
	case r.Row.ByUser == "":
		return true
	case r.ByGone != 0, r.Row.SpaceID != "" && r.OwnsIt != r.Row.ByUser, r.Row.Admin && !r.ByAdmin:
		return false
	}
	return r.Row.SpaceID != "" || r.ByAdmin
}

const invitationQuery = `SELECT i.*, COALESCE(u.name, '') AS by_name, COALESCE(u.admin, FALSE) AS by_admin,
	COALESCE(u.removed + u.suspended, 0) AS by_gone, COALESCE(s.name, '') AS space_name, COALESCE(s.owner_id, '') AS owns_it
FROM auth_invitations i
LEFT JOIN auth_users u ON u.id = i.by_user
LEFT JOIN auth_spaces s ON s.id = i.space_id `

// CreateInvitation creates an invitation. The error is a fault.Forbidden if the inviter is not
// an admin and the invitation is to the server only, or would make the person an admin. It is a
// fault.NotFound for a space that the inviter does not own, a fault.Invalid for an invalid role,
// and a fault.Limited if maxInvitations is reached.
func (s *Store) CreateInvitation(ctx context.Context, by Actor, n NewInvitation) (auth.Secret, Invitation, error) {
	err := checkLabel("note", n.Note)
	if err == nil && n.Email != "" {
		err = CheckEmail(n.Email)
	}
	if err != nil {
		return auth.Secret{}, Invitation{}, err
	}
	if n.Space == "" && n.Role != "" || n.Space != "" && n.Role != space.Editor && n.Role != space.Reader {
		return auth.Secret{}, Invitation{}, fault.New(fault.Invalid, "A member can be made an editor or a reader, not %q.", short(string(n.Role)))
	}
	if n.Lifetime <= 0 {
		return auth.Secret{}, Invitation{}, fault.New(fault.Invalid, "The expiry time of the invite is in the past.")
	}
	if n.By == "" && by.User != "" {
		return auth.Secret{}, Invitation{}, fmt.Errorf("an invitation of nobody by %s", by.User)
	}
	now := s.now()
	secret := auth.NewSecret(auth.KindInvitation)
	row := invitationRow{
		ID: newID("iv_"), Hash: hashOf(secret), ByUser: string(n.By), Note: n.Note, Email: n.Email, Admin: n.Admin, SpaceID: string(n.Space),
		Role: string(n.Role), Created: database.Millis(now), Expires: database.Millis(now.Add(n.Lifetime)),
	}
	var made namedInvitation
	err = s.db.Transact(ctx, func(tx *gorm.DB) error {
		if err := s.checkInviter(tx, n); err != nil {
			return err
		}
		if err := tx.Create(&row).Error; err != nil {
			return fmt.Errorf("create invitation: %w", err)
		}
		if err := tx.Raw(invitationQuery+"WHERE i.id = ?", row.ID).Scan(&made).Error; err != nil {
			return fmt.Errorf("read invitation: %w", err)
		}
		return s.record(tx, by, "invitation.create", row.ID, map[string]any{"name": cmp.Or(n.Note, n.Email), "by": n.By, "space": n.Space, "role": n.Role, "admin": n.Admin, "expires": row.Expires})
	})
	if err != nil {
		return auth.Secret{}, Invitation{}, err
	}
	return secret, made.invitation(), nil
}

func (s *Store) checkInviter(tx *gorm.DB, n NewInvitation) error {
	owner := ""
	if n.Space != "" {
		sp, err := takeSpace(tx, n.Space)
		if err != nil {
			return err
		}
		owner = sp.OwnerID
	}
	if n.By == "" {
		return nil
	}
	u, err := s.lockActive(tx, n.By)
	if err != nil {
		return err
	}
	switch {
	case n.Space != "" && owner != u.ID:
		return fault.New(fault.NotFound, "You have no such space.")
	case (n.Space == "" || n.Admin) && !u.Admin:
		return fault.New(fault.Forbidden, "Only an admin can invite to the server; you can invite to a space that you own.")
	}
	var open int64
	if err := tx.Model(&invitationRow{}).Where("by_user = ? AND used = 0 AND expires > ?", u.ID, s.now().UnixMilli()).Count(&open).Error; err != nil {
		return fmt.Errorf("count invitations: %w", err)
	}
	if open >= maxInvitations {
		return fault.New(fault.Limited, "There are already %d open invites; revoke some first.", open)
	}
	return nil
}

// PeekInvitation returns an invitation without using it. The error is a fault.NotFound if
// the invitation is unknown, was used or revoked or has expired, or if its inviter has lost
// the right to invite.
func (s *Store) PeekInvitation(ctx context.Context, secret string) (Invitation, error) {
	r, err := s.takeInvitation(s.db.Read(ctx), secret)
	if err != nil {
		return Invitation{}, err
	}
	return r.invitation(), nil
}

func errInvitationUsed() error {
	return fault.New(fault.NotFound, "This invite was already used. If you accepted it, sign in. Otherwise, ask for a new one.")
}

func (s *Store) takeInvitation(tx *gorm.DB, secret string) (namedInvitation, error) {
	unknown := fault.New(fault.NotFound, "This server does not know the invite, or it was revoked; ask for a new one.")
	var r namedInvitation
	hash, ok := parseHash(auth.KindInvitation, secret)
	if !ok {
		return r, unknown
	}
	err := tx.Raw(invitationQuery+"WHERE i.hash = ?", hash).Take(&r).Error
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return r, unknown
	case err != nil:
		return r, fmt.Errorf("look up invitation: %w", err)
	case r.Row.Used != 0:
		return r, errInvitationUsed()
	case s.now().UnixMilli() >= r.Row.Expires:
		return r, fault.New(fault.NotFound, "This invite has expired; ask for a new one.")
	case !r.mayInvite():
		return r, unknown
	}
	return r, nil
}

// AcceptInvitation uses an invitation once. In the same transaction the user becomes a
// member or an admin. It never lowers a role. The errors are those of PeekInvitation, a
// fault.Forbidden if the user is suspended, and a fault.Conflict for the user's own invitation.
func (s *Store) AcceptInvitation(ctx context.Context, by Actor, secret string, user space.UserID) (Invitation, error) {
	var out Invitation
	err := s.transact(ctx, func(tx *gorm.DB) error {
		if err := s.lockUsers(tx); err != nil {
			return err
		}
		u, err := s.lockActive(tx, user)
		if err != nil {
			return err
		}
		out, err = s.accept(tx, by, secret, u)
		return err
	})
	if err != nil {
		return Invitation{}, err
	}
	return out, nil
}

// accept does the work of AcceptInvitation. The caller has called lockUsers.
func (s *Store) accept(tx *gorm.DB, by Actor, secret string, u userRow) (Invitation, error) {
	r, err := s.takeInvitation(tx, secret)
	if err != nil {
		return Invitation{}, err
	}
	if r.Row.ByUser == u.ID {
		return Invitation{}, fault.New(fault.Conflict, "This is your own invite. Send its link to the person you are inviting.")
	}
	now := s.now()
	done := tx.Exec("UPDATE auth_invitations SET used = ?, used_by = ? WHERE id = ? AND used = 0", now.UnixMilli(), u.ID, r.Row.ID)
	if done.Error != nil {
		return Invitation{}, fmt.Errorf("accept invitation: %w", done.Error)
	}
	if done.RowsAffected == 0 {
		return Invitation{}, errInvitationUsed()
	}
	if r.Row.SpaceID != "" {
		if err := s.raiseMember(tx, by, memberRow{SpaceID: r.Row.SpaceID, UserID: u.ID, Role: r.Row.Role, Added: now.UnixMilli()}); err != nil {
			return Invitation{}, err
		}
	}
	if r.Row.Admin && !u.Admin {
		if err := s.setAdmin(tx, by, u, true); err != nil {
			return Invitation{}, err
		}
	}
	if err := unblock(tx, u); err != nil {
		return Invitation{}, err
	}
	r.Row.Used, r.Row.UsedBy = now.UnixMilli(), u.ID
	return r.invitation(), s.record(tx, by, "invitation.accept", r.Row.ID, map[string]any{"user": u.ID, "by": r.Row.ByUser})
}

// raiseMember adds a member or raises their role.
func (s *Store) raiseMember(tx *gorm.DB, by Actor, m memberRow) error {
	added := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&m)
	if added.Error == nil && added.RowsAffected == 0 && m.Role == string(space.Editor) {
		added = tx.Exec("UPDATE auth_members SET role = ? WHERE space_id = ? AND user_id = ? AND role = ?", m.Role, m.SpaceID, m.UserID, string(space.Reader))
	}
	if added.Error != nil {
		return fmt.Errorf("add member: %w", added.Error)
	}
	if added.RowsAffected == 0 {
		return nil
	}
	return s.record(tx, by, "member.set", m.SpaceID, map[string]any{"user": m.UserID, "role": m.Role})
}

// Invitations returns the open invitations that one person created, newest first. If by is
// empty, it returns everyone's. It omits those whose inviter has lost the right to invite.
func (s *Store) Invitations(ctx context.Context, by space.UserID) ([]Invitation, error) {
	where, args := "WHERE i.used = 0 AND i.expires > ?", []any{s.now().UnixMilli()}
	if by != "" {
		where, args = where+" AND i.by_user = ?", append(args, string(by))
	}
	var rows []namedInvitation
	if err := s.db.Read(ctx).Raw(invitationQuery+where+" ORDER BY i.created DESC, i.id", args...).Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("list invitations: %w", err)
	}
	out := make([]Invitation, 0, len(rows))
	for _, r := range rows {
		if r.mayInvite() {
			out = append(out, r.invitation())
		}
	}
	return out, nil
}

// RevokeInvitation revokes an open invitation. The error is a fault.NotFound if there is no such
// open invitation, or if owner is not empty and the invitation is not theirs.
func (s *Store) RevokeInvitation(ctx context.Context, by Actor, id string, owner space.UserID) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		q := tx.Where("id = ? AND used = 0", lookup(id))
		if owner != "" {
			q = q.Where("by_user = ?", string(owner))
		}
		var row invitationRow
		gone := q.Clauses(clause.Returning{}).Delete(&row)
		if gone.Error != nil {
			return fmt.Errorf("revoke invitation: %w", gone.Error)
		}
		if gone.RowsAffected == 0 {
			return fault.New(fault.NotFound, "There is no such open invite.")
		}
		return s.record(tx, by, "invitation.revoke", id, map[string]any{"name": cmp.Or(row.Note, row.Email)})
	})
}
