package admin

import (
	"context"
	"time"

	"satchel/auth/store"
	"satchel/internal/space"
)

// Accounts is what operators do about who may come in, and to what.
type Accounts interface {
	// LoginLink makes a one-time link that signs a person in, and ends earlier
	// ones of theirs. An empty name is the first admin.
	LoginLink(ctx context.Context, user string) (Link, error)
	// SetAdmin makes a person an admin or a member. There is always an admin.
	SetAdmin(ctx context.Context, name string, admin bool) error
	// SignOut ends a person's sessions in browsers and returns how many; their
	// clients stay connected.
	SignOut(ctx context.Context, name string) (int, error)

	// Invite makes an invitation.
	Invite(ctx context.Context, r InviteRequest) (Link, error)
	// Invitations lists those that are open.
	Invitations(ctx context.Context) ([]Invitation, error)
	RevokeInvitation(ctx context.Context, id string) error

	// CreateSpace makes a further space of a person's.
	CreateSpace(ctx context.Context, r SpaceRequest) (SpaceInfo, error)
	// GiveSpace makes another person the owner; the former one becomes an editor.
	GiveSpace(ctx context.Context, r GiveRequest) (SpaceInfo, error)
	// DeleteSpace deletes a space, and all that it holds, or tells what that would be.
	DeleteSpace(ctx context.Context, r DeleteRequest) (DeletedSpace, error)
	Members(ctx context.Context, r SpaceRequest) ([]Member, error)
	// SetMember adds a person to a space or changes their role. RemoveMember ends
	// what their clients were given of it, and what runs there for them.
	SetMember(ctx context.Context, r MemberRequest) error
	RemoveMember(ctx context.Context, r MemberRequest) error

	// AddClient makes an OAuth client, for those that cannot register themselves.
	AddClient(ctx context.Context, r ClientRequest) (Client, error)
	Clients(ctx context.Context) ([]Client, error)
	// RemoveClient ends all that the client was granted.
	RemoveClient(ctx context.Context, id string) error
	// Grants lists what clients were given and still have: by one person, or by
	// all where user is empty.
	Grants(ctx context.Context, user string) ([]Grant, error)
	RevokeGrant(ctx context.Context, id space.GrantID) error

	// Audit lists the newest acts, newest first.
	Audit(ctx context.Context, r AuditRequest) ([]AuditEntry, error)
}

// Link is a link to hand to somebody: whoever opens it first has what it gives.
type Link struct {
	ID      string    `json:"id,omitempty"`
	URL     string    `json:"url"`
	User    string    `json:"user,omitempty"`
	Expires time.Time `json:"expires"`
}

// InviteRequest asks for an invitation: to the server, or with Space to a space
// of By's, who is the first admin where it is empty.
type InviteRequest struct {
	By    string     `json:"by"`
	Share bool       `json:"share"` // to a space
	Space string     `json:"space"` // which; empty for their first
	Role  space.Role `json:"role"`
	Admin bool       `json:"admin"`
	Note  string     `json:"note"`
	Email string     `json:"email"` // becomes theirs, where By is an admin and they have none
}

// Invitation is an open invitation as it is listed.
type Invitation struct {
	ID      string     `json:"id"`
	By      string     `json:"by"`
	Space   string     `json:"space,omitempty"`
	Role    space.Role `json:"role,omitempty"`
	Admin   bool       `json:"admin,omitempty"`
	Note    string     `json:"note,omitempty"`
	Email   string     `json:"email,omitempty"`
	Expires time.Time  `json:"expires"`
}

// SpaceRequest names a space of a person's; empty names are the first admin and
// their first space.
type SpaceRequest struct {
	User string `json:"user"`
	Name string `json:"name"`
}

// GiveRequest says who becomes the owner of a space. The space's name may be an id,
// of one that nobody owns, too.
type GiveRequest struct {
	SpaceRequest
	To string `json:"to"`
}

// DeleteRequest says which space is deleted, or with Look only looked at. Its name may
// be an id.
type DeleteRequest struct {
	SpaceRequest
	Look bool `json:"look"`
}

// DeletedSpace is a space that is deleted, or would be.
type DeletedSpace struct {
	ID   space.SpaceID `json:"id"`
	Name string        `json:"name"`
	// Owner is empty if the owner was removed; OwnerWas is their name then.
	Owner    string `json:"owner"`
	OwnerWas string `json:"owner_was,omitempty"`
	// Members are those beside the owner, and Sources what is published of it.
	Members int `json:"members"`
	Sources int `json:"sources"`
	// Remote is where it was pushed, empty for nowhere, and Unpushed how many
	// changes were not.
	Remote   string `json:"remote,omitempty"`
	Unpushed int    `json:"unpushed,omitempty"`
	Deleted  bool   `json:"deleted"`
}

// OwnerLabel is whose the space is, for people.
func (d DeletedSpace) OwnerLabel() string { return store.OwnerLabel(d.Owner, d.OwnerWas) }

// MemberRequest names a member of a space.
type MemberRequest struct {
	SpaceRequest
	Member string     `json:"member"`
	Role   space.Role `json:"role"`
}

// Member is a member as listed.
type Member struct {
	Name  string     `json:"name"`
	Role  space.Role `json:"role"`
	Added time.Time  `json:"added"`
}

// ClientRequest asks for an OAuth client.
type ClientRequest struct {
	Name      string   `json:"name"`
	Redirects []string `json:"redirects"`
}

// Client is an OAuth client as listed.
type Client struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Kind      string     `json:"kind"`
	Redirects []string   `json:"redirects"`
	Created   time.Time  `json:"created"`
	LastUsed  *time.Time `json:"last_used,omitempty"`
}

// Grant is what a client was given, as listed.
type Grant struct {
	ID       space.GrantID `json:"id"`
	Kind     string        `json:"kind"`
	User     string        `json:"user"`
	Space    string        `json:"space"`
	Name     string        `json:"name"`
	Client   string        `json:"client,omitempty"`
	Scopes   []space.Scope `json:"scopes"`
	Created  time.Time     `json:"created"`
	LastUsed *time.Time    `json:"last_used,omitempty"`
}

// AuditRequest says which acts are listed: of and about who has or had the name User,
// and whose action begins with Act, where these are not empty.
type AuditRequest struct {
	Limit int    `json:"limit"` // at most 1000
	User  string `json:"user"`
	Act   string `json:"act"`
}

// AuditEntry is one act.
type AuditEntry struct {
	At      time.Time `json:"at"`
	User    string    `json:"user,omitempty"`
	Via     string    `json:"via"`
	Action  string    `json:"action"`
	Subject string    `json:"subject"` // an id
	About   string    `json:"about"`   // what it is called
	// Detail holds ids and, as texts, times; never a secret. Names are of those ids.
	Detail map[string]any    `json:"detail"`
	Names  map[string]string `json:"names"`
}
