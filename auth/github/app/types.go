package app

import (
	"context"
	"time"

	"satchel/auth"
	"satchel/internal/space"
)

// Paths of this server to which GitHub redirects people or, for PathWebhook, sends webhooks. The
// App's manifest names them. PathCreated receives the manifest's code.
const (
	PathCallback       = "/github/callback"
	PathSetup          = "/github/setup"
	PathWebhook        = "/github/webhook"
	PathCreated        = "/admin/github/created"
	pathSignInCallback = "/signin/github/callback"
)

// Store stores the App and its links. It encrypts secrets, so that a copy of the stored data
// does not reveal them. For the audit log, by is the person, and via is how the action was done,
// such as "web".
type Store interface {
	// GitHubApp returns the App with its secrets. It returns false if there is no App.
	GitHubApp(ctx context.Context) (auth.GitHubApp, bool, error)
	// SetGitHubApp stores an App. The error is a fault.Conflict if there is already an App.
	SetGitHubApp(ctx context.Context, by space.UserID, via string, a auth.GitHubApp) error
	// RemoveGitHubApp removes the App. All links become auth.LinkRemoved.
	RemoveGitHubApp(ctx context.Context, by space.UserID, via string) error

	// LinkRepository connects a repository to a space. It replaces the space's former
	// repository. The error is a fault.NotFound if the space does not exist, and a
	// fault.Conflict if the repository is connected to another space. If the other space's
	// connection is removed or lost, that connection ends instead.
	LinkRepository(ctx context.Context, by space.UserID, via string, l auth.RepositoryLink) error
	RepositoryLink(ctx context.Context, id space.SpaceID) (auth.RepositoryLink, bool, error)
	RepositoryLinks(ctx context.Context) ([]auth.RepositoryLink, error)
	// UnlinkRepository ends the connection of a space, if it has one.
	UnlinkRepository(ctx context.Context, by space.UserID, via string, id space.SpaceID) error
	// UpdateLink stores GitHub's answer about a link, unless the stored link changed after
	// the request to GitHub. changed reports whether UpdateLink stored the answer.
	UpdateLink(ctx context.Context, was, is auth.RepositoryLink) (changed bool, err error)

	// AskForApproval records that somebody waits for an owner to approve the installation for
	// a space. PendingApproval returns the time at which the wait for a space began.
	AskForApproval(ctx context.Context, id space.SpaceID, user space.UserID) error
	PendingApproval(ctx context.Context, id space.SpaceID) (since time.Time, ok bool, err error)

	// SeenDelivery records the id of a webhook. first reports whether the id was new.
	SeenDelivery(ctx context.Context, id string) (first bool, err error)
}

// Found holds the repositories that a person may connect, as GitHub reported them. The server
// stores its JSON for the few minutes until the person has chosen. Found contains no token.
type Found struct {
	App        int64  `json:"app"` // the ID of the App that asked GitHub
	GitHubUser int64  `json:"user"`
	Login      string `json:"login"`
	// Installations are the App's installations that the person can see, including
	// suspended ones.
	Installations []Installation `json:"installations,omitempty"`
	// Repositories are the repositories of the installations that are not suspended. The
	// repository Created is first. Then come those to which the person may push, and then the
	// others. Both groups begin with the most recent push.
	Repositories []Repository `json:"repositories,omitempty"`
	// Cut reports whether some installations or repositories are missing from the lists.
	Cut bool `json:"cut,omitempty"`
	// Created is the id of the repository that FinishCreate created, or 0. If Repositories
	// does not contain it, the installation does not include the repository yet.
	Created int64 `json:"created,omitempty"`
}

// Installation is an installation of the App on an account.
type Installation struct {
	ID          int64  `json:"id"`
	Account     string `json:"account"`     // login
	AccountType string `json:"accountType"` // User or Organization
	// ManageURL is the page at GitHub where the account's owner chooses repositories.
	ManageURL string `json:"manage"`
	Selection string `json:"selection"` // all or selected
	Suspended bool   `json:"suspended,omitempty"`
}

// Repository is a repository that an installation includes and that the person can see.
type Repository struct {
	ID            int64  `json:"id"`
	FullName      string `json:"name"` // owner/name
	Private       bool   `json:"private,omitempty"`
	Push          bool   `json:"push,omitempty"` // the person may push
	Archived      bool   `json:"archived,omitempty"`
	Installation  int64  `json:"in"`
	DefaultBranch string `json:"branch,omitempty"`
	// CloneURL is derived from FullName, and is not in the JSON; see Client.CloneURL.
	CloneURL string `json:"-"`
}

// NewApp holds an admin's choices for a new App.
type NewApp struct {
	// Organisation is the login of the organization that will own the App. If it is empty,
	// the person who presses the button will own the App.
	Organisation string
	// Creates requests the permission to create repositories. At GitHub, this permission
	// includes their administration.
	Creates bool
	// Public allows other accounts than the owner's to install the App. An installation
	// gives the App access to the account. It gives the account no access to this server.
	Public bool
}

// NewRepository describes the repository that FinishCreate creates.
type NewRepository struct {
	Owner       string // login of the person or of an organization; empty for the person
	Name        string
	Description string
	Private     bool
}
