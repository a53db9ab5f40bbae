package app

import (
	"context"
	"time"

	"satchel/auth"
	"satchel/internal/space"
)

// Paths of this server's pages to which GitHub sends people, as the App's manifest names
// them. PathCreated receives the manifest's code.
const (
	PathCallback       = "/github/callback"
	PathSetup          = "/github/setup"
	PathWebhook        = "/github/webhook"
	PathCreated        = "/admin/github/created"
	pathSignInCallback = "/signin/github/callback"
)

// Store keeps the App and what is connected by it. It keeps secrets so that a copy
// of it gives none away. via says how somebody did an act, for the audit log.
type Store interface {
	// GitHubApp returns the App with its secrets; false if there is none.
	GitHubApp(ctx context.Context) (auth.GitHubApp, bool, error)
	// SetGitHubApp keeps an App; fault.Conflict if there is one.
	SetGitHubApp(ctx context.Context, by space.UserID, via string, a auth.GitHubApp) error
	// RemoveGitHubApp forgets the App; every connected repository becomes removed.
	RemoveGitHubApp(ctx context.Context, by space.UserID, via string) error

	// LinkRepository connects a repository to a space and replaces the previous one. The
	// error is a fault.NotFound if the space does not exist, and a fault.Conflict if
	// another space has the repository. A removed or lost connection of another space ends.
	LinkRepository(ctx context.Context, by space.UserID, via string, l auth.RepositoryLink) error
	RepositoryLink(ctx context.Context, id space.SpaceID) (auth.RepositoryLink, bool, error)
	RepositoryLinks(ctx context.Context) ([]auth.RepositoryLink, error)
	// UnlinkRepository does nothing if the space has none.
	UnlinkRepository(ctx context.Context, by space.UserID, via string, id space.SpaceID) error
	// UpdateLink stores what GitHub said about a link, unless the link has changed
	// since the request to GitHub. changed reports whether it stored that.
	UpdateLink(ctx context.Context, was, is auth.RepositoryLink) (changed bool, err error)

	// AskForApproval records that somebody waits for an owner's approval of the
	// installation. PendingApproval returns since when somebody waits for a space.
	AskForApproval(ctx context.Context, id space.SpaceID, user space.UserID) error
	PendingApproval(ctx context.Context, id space.SpaceID) (since time.Time, ok bool, err error)

	// SeenDelivery records a webhook's ID. first reports that it was new.
	SeenDelivery(ctx context.Context, id string) (first bool, err error)
}

// Found is what a person may connect according to GitHub. Its JSON is only for the server,
// for the few minutes until the person has chosen. It has no token.
type Found struct {
	App        int64  `json:"app"` // by which it was found
	GitHubUser int64  `json:"user"`
	Login      string `json:"login"`
	// Installations of the App that the person sees, suspended ones too.
	Installations []Installation `json:"installations,omitempty"`
	// Repositories of those that are not suspended. Those that the person may push to come
	// first, then the most recently used.
	Repositories []Repository `json:"repositories,omitempty"`
	// Cut reports that there are more than are listed.
	Cut bool `json:"cut,omitempty"`
	// Created is the id of the repository that FinishCreate made. Where none of
	// Repositories has it, the installation does not include it yet.
	Created int64 `json:"created,omitempty"`
}

// Installation is an installation of the App on an account.
type Installation struct {
	ID          int64  `json:"id"`
	Account     string `json:"account"`     // login
	AccountType string `json:"accountType"` // User or Organization
	// ManageURL is the page at GitHub where its owner chooses repositories.
	ManageURL string `json:"manage"`
	Selection string `json:"selection"` // all or selected
	Suspended bool   `json:"suspended,omitempty"`
}

// Repository is a repository that an installation includes and the person sees.
type Repository struct {
	ID            int64  `json:"id"`
	FullName      string `json:"name"` // owner/name
	Private       bool   `json:"private,omitempty"`
	Push          bool   `json:"push,omitempty"` // the person may
	Archived      bool   `json:"archived,omitempty"`
	Installation  int64  `json:"in"`
	DefaultBranch string `json:"branch,omitempty"`
	// CloneURL follows from FullName, and is not in the JSON; see Client.CloneURL.
	CloneURL string `json:"-"`
}

// NewApp is an admin's choices for a new App.
type NewApp struct {
	// Organisation is the login of the organisation that will own it; empty for the person
	// who presses the button.
	Organisation string
	// Creates asks for the permission to make repositories, which at GitHub includes
	// administering them.
	Creates bool
	// Public lets other accounts than its owner's install it. Installing gives the App
	// access, and the account none.
	Public bool
}

// NewRepository describes the repository that FinishCreate makes.
type NewRepository struct {
	Owner       string // login of the person or an organisation; empty: the person
	Name        string
	Description string
	Private     bool
}
