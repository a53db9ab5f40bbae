package admin

import (
	"satchel/auth/store"
	"satchel/internal/space"
)

// SpaceRequest names a space of a person's; empty names are the first admin and
// their first space.
type SpaceRequest struct {
	User string `json:"user"`
	Name string `json:"name"`
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
