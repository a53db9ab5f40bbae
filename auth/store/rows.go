package store

import (
	"strings"
	"time"

	"satchel/internal/database"
	"satchel/internal/space"
)

type userRow struct {
	ID      string `gorm:"primaryKey"`
	Issuer  string
	Subject string
	Name    string
	Display string
	Email   string
	Admin   bool
	Created int64
	Removed int64
	// EmailKey is Email in the form that UserByEmail compares.
	EmailKey  string
	Admitted  string
	Suspended int64
}

func (userRow) TableName() string { return "auth_users" }

func (r userRow) user() User {
	return User{
		ID: space.UserID(r.ID), Issuer: r.Issuer, Subject: r.Subject, Name: r.Name, Display: r.Display,
		Email: r.Email, Admin: r.Admin, Created: database.Time(r.Created),
		Admitted: r.Admitted, Suspended: database.Time(r.Suspended),
	}
}

type spaceRow struct {
	ID      string `gorm:"primaryKey"`
	Name    string
	OwnerID string
	Created int64
	Source  string
}

func (spaceRow) TableName() string { return "auth_spaces" }

func (r spaceRow) space() Space {
	return Space{ID: space.SpaceID(r.ID), Name: r.Name, Owner: space.UserID(r.OwnerID), Created: database.Time(r.Created), Source: r.Source}
}

type memberRow struct {
	SpaceID string `gorm:"primaryKey"`
	UserID  string `gorm:"primaryKey"`
	Role    string
	Added   int64
}

func (memberRow) TableName() string { return "auth_members" }

type grantRow struct {
	ID       string `gorm:"primaryKey"`
	UserID   string
	SpaceID  string
	Scopes   string
	Name     string
	KeyHash  []byte
	Created  int64
	Expires  int64
	Revoked  int64
	LastUsed int64
	Kind     string
	// Issuer is set only if the client belongs to another issuer.
	Issuer   string
	ClientID string
	Resource string
}

func (grantRow) TableName() string { return "auth_grants" }

func (r grantRow) grant() space.Grant {
	return space.Grant{
		ID: space.GrantID(r.ID), User: space.UserID(r.UserID), Space: space.SpaceID(r.SpaceID),
		Scopes: splitScopes(r.Scopes), Name: r.Name, Created: database.Time(r.Created),
		Expires: database.Time(r.Expires), Revoked: database.Time(r.Revoked), LastUsed: usedSince(r.Created, r.LastUsed),
	}
}

// usedSince returns the time of last use, or the time of creation if that is later. The stored
// time of use may be rounded down to before the creation.
func usedSince(created, used int64) time.Time {
	if used == 0 {
		return time.Time{}
	}
	return database.Time(max(created, used))
}

func splitScopes(s string) []space.Scope {
	var out []space.Scope
	for f := range strings.FieldsSeq(s) {
		out = append(out, space.Scope(f))
	}
	return out
}

type auditRow struct {
	ID      int64 `gorm:"primaryKey"`
	At      int64
	Actor   string
	Via     string
	Action  string
	Subject string
	Detail  string
}

func (auditRow) TableName() string { return "auth_audit" }

// User is a person who may use this server.
type User struct {
	ID space.UserID
	// Issuer and Subject are the person's identity. For a user without an identity at another
	// issuer, they are LocalIssuer and the ID.
	Issuer, Subject string
	Name            string // unique; see CheckName
	Display         string // shown to people; may be empty
	Email           string // may be empty
	Admin           bool
	Created         time.Time
	// Admitted is the reason that admits the user: "command", "first run", "invitation", or
	// an entry of the allow list such as "domain:example.com".
	Admitted string
	// Suspended is when the user was suspended (see SuspendUnlisted), or zero.
	Suspended time.Time
}

// Space is a space without its content.
type Space struct {
	ID      space.SpaceID
	Name    string // unique among its owner's spaces
	Owner   space.UserID
	Created time.Time
	// Source names the synced source to which the space belongs. Such a space has no members, and
	// only the sync writes to it. For the spaces of people, Source is empty.
	Source string
}

// Membership is a space and a member's role in it.
type Membership struct {
	Space
	// OwnerName is empty if the owner was removed, because another user may have taken the
	// name. OwnerWas is then the former name, to show to people; see OwnerLabel.
	OwnerName, OwnerWas string
	Role                space.Role
}

// Member is a user and their role in one space.
type Member struct {
	User  space.UserID
	Name  string
	Role  space.Role
	Added time.Time
}

// Key is an API key with the names that people see.
type Key struct {
	space.Grant
	UserName  string
	SpaceName string
}

// Stats counts users, spaces and keys, without removed users, spaces of synced sources, and
// revoked or expired keys.
type Stats struct {
	Users, Admins, Spaces, Keys int64
}
