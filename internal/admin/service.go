package admin

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"satchel/auth/store"
	"satchel/internal/space"
)

// Service is what the command line may ask for. Errors are fault.Errors whose
// message is for the operator.
type Service interface {
	// Info reports what runs.
	Info(ctx context.Context) (Info, error)
	// Perform performs an operation of the service for the operator; Do is its typed
	// form. The input and the result are JSON.
	Perform(ctx context.Context, operation string, in json.RawMessage) (json.RawMessage, error)

	// AddUser makes a person with a space of their own.
	AddUser(ctx context.Context, name string, admin bool) (User, error)
	Users(ctx context.Context) ([]User, error)
	// RemoveUser ends a person's keys and sandboxes at once. Their spaces stay.
	RemoveUser(ctx context.Context, name string) error
	// PartUser is RemoveUser, and tells which spaces nobody owns now.
	PartUser(ctx context.Context, name string) (Parted, error)
	// AddPerson is AddUser with all that may be said of them at first.
	AddPerson(ctx context.Context, n NewPerson) (User, error)
	// SetEmail changes where a person gets sign-in links; empty: nowhere.
	SetEmail(ctx context.Context, r EmailRequest) error

	// CreateToken makes an API key; its secret is told this once.
	CreateToken(ctx context.Context, r TokenRequest) (Token, error)
	// Tokens lists keys, ended ones too, newest first: of one person, or of all
	// where user is empty.
	Tokens(ctx context.Context, user string) ([]TokenInfo, error)
	RevokeToken(ctx context.Context, id space.GrantID) error

	// Spaces lists spaces: those of one person, or all where user is empty.
	Spaces(ctx context.Context, user string) ([]SpaceInfo, error)
	// Import fills a person's space from a stream (see ImportRequest.Kind). Where
	// reading the stream fails the error is the stream's, and nothing has changed.
	// The stream may still be read when Import returns, until it is closed.
	Import(ctx context.Context, r ImportRequest, stream io.Reader, progress func(string)) (ImportResult, error)

	Accounts
	Remotes
	Searching
	Upkeep
}

// Info is what runs.
type Info struct {
	Version string `json:"version"`
	// Passing is set where a client's own process serves for as long as that
	// client runs (satchel stdio where no server ran).
	Passing bool `json:"passing,omitempty"`
	// URL is the MCP endpoint as clients on this machine reach it; empty if
	// no server runs.
	URL string `json:"url"`
	// MaxFile is how many bytes a file of a space may have.
	MaxFile int64 `json:"max_file"`
}

// NewPerson is who AddPerson makes.
type NewPerson struct {
	Name  string `json:"name"`
	Admin bool   `json:"admin"`
	Email string `json:"email"`
}

// EmailRequest says what a person's address is.
type EmailRequest struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// The states of a User.
const (
	StateActive    = "active"
	StateSuspended = "suspended" // no entry of the allow list lets them in any more
)

// User is a person. The JSON form is part of the command line's contract.
type User struct {
	ID      space.UserID `json:"id"`
	Name    string       `json:"name"`
	Admin   bool         `json:"admin"`
	Email   string       `json:"email,omitempty"`
	State   string       `json:"state"`
	Created time.Time    `json:"created"`
}

// Parted is what a removed person leaves.
type Parted struct {
	Removed string      `json:"removed"`
	Spaces  []SpaceName `json:"spaces"`
}

// SpaceName names a space.
type SpaceName struct {
	ID   space.SpaceID `json:"id"`
	Name string        `json:"name"`
}

// TokenRequest asks for an API key. An empty User is the first admin, and an empty
// Space the person's first.
type TokenRequest struct {
	User    string        `json:"user"`
	Space   string        `json:"space,omitempty"`
	Scopes  []space.Scope `json:"scopes"`
	Name    string        `json:"name"`
	Expires time.Duration `json:"expires"` // zero: never
}

// Token is a new key with its secret.
type Token struct {
	ID     space.GrantID `json:"id"`
	Secret string        `json:"token"`
}

// TokenInfo is a key as it is listed.
type TokenInfo struct {
	ID       space.GrantID `json:"id"`
	User     string        `json:"user"`
	Space    string        `json:"space"`
	Name     string        `json:"name"`
	Scopes   []space.Scope `json:"scopes"`
	Created  time.Time     `json:"created"`
	Expires  *time.Time    `json:"expires,omitempty"`
	LastUsed *time.Time    `json:"last_used,omitempty"`
	Revoked  bool          `json:"revoked"`
}

// Ended reports whether the key is of no use at a time.
func (t TokenInfo) Ended(at time.Time) bool {
	return t.Revoked || t.Expires != nil && !t.Expires.After(at)
}

// SpaceInfo is a space as it is listed.
type SpaceInfo struct {
	ID   space.SpaceID `json:"id"`
	Name string        `json:"name"`
	// Owner is empty if the owner was removed; OwnerWas is their name then.
	Owner    string `json:"owner"`
	OwnerWas string `json:"owner_was,omitempty"`
	// Repository is the bare repository's path on the server's machine.
	Repository string `json:"repository"`
	// Head is empty if the space is damaged so that it cannot be opened.
	Head space.CommitID `json:"head"`
}

// OwnerLabel is whose the space is, for people.
func (s SpaceInfo) OwnerLabel() string { return store.OwnerLabel(s.Owner, s.OwnerWas) }

// ImportRequest says into whose space a stream goes. An empty User is the first
// admin.
type ImportRequest struct {
	User   string
	Kind   string // KindBundle or KindTar
	Source string // for the commit message: what the operator named, without credentials
}

// The kinds of streams that Import reads.
const (
	KindBundle = "bundle" // a git bundle with one head
	KindTar    = "tar"    // regular files and symbolic links
)

// ImportResult is what came of an Import.
type ImportResult struct {
	Commit    space.CommitID `json:"commit"`
	Files     int            `json:"files"`
	History   bool           `json:"history"` // the source's history became the space's
	Refused   []Refused      `json:"refused,omitempty"`
	Conflicts []Conflict     `json:"conflicts,omitempty"` // where both versions were kept
	Replaced  []string       `json:"replaced,omitempty"`  // what nobody had changed since the space began
	Warnings  []Warning      `json:"warnings,omitempty"`  // imported content that looks like a secret
	Changed   bool           `json:"changed"`             // false: the space had it all
}

// Conflict is a file of which the space has another version.
type Conflict struct {
	Path string `json:"path"` // has the space's
	Kept string `json:"kept"` // has the imported one
}

// Warning is a problem with a file that was imported all the same.
type Warning struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Refused is a file that was left out.
type Refused struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}
