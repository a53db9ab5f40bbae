package auth

import (
	"cmp"
	"log/slog"
	"time"

	"satchel/internal/space"
)

// GitHubApp is the GitHub App by which people connect repositories: one for a
// server. Its secrets are sealed wherever it is stored, and print as nothing.
type GitHubApp struct {
	URL      string // of its GitHub, such as https://github.com
	ID       int64
	ClientID string
	Slug     string
	Name     string
	Owner    string // login of whose it is
	HTMLURL  string // its public page; where people install it is below
	// Creates reports that it has the permission to make repositories.
	Creates bool
	Created time.Time
	Secrets GitHubSecrets
}

// GitHubSecrets are what proves the server to GitHub, and GitHub to the server.
type GitHubSecrets struct {
	ClientSecret string `json:"client_secret"`
	PrivateKey   string `json:"private_key"` // PEM
	Webhook      string `json:"webhook"`     // empty: GitHub sends none
}

// String, GoString and LogValue keep the secrets out of everything that prints.
func (GitHubSecrets) String() string { return "[secret]" }

// GoString is String.
func (GitHubSecrets) GoString() string { return "[secret]" }

// LogValue is String.
func (GitHubSecrets) LogValue() slog.Value { return slog.StringValue("[secret]") }

// RepositoryLink is a repository at GitHub that a person connected to a space,
// after GitHub said that they may push to it. Ids count; names are for people.
type RepositoryLink struct {
	Space        space.SpaceID
	User         space.UserID // who connected it
	GitHubUser   int64        // as whom
	GitHubLogin  string
	Installation int64
	Account      string // login of the installation's account
	Repository   int64
	FullName     string // owner/name, as last seen
	State        LinkState
	Since        time.Time // when State began
	Checked      time.Time // when GitHub last confirmed that the person may push
	Created      time.Time
}

// LinkState is how a RepositoryLink stands.
type LinkState string

// The states.
const (
	LinkConnected LinkState = "connected"
	LinkSuspended LinkState = "suspended" // the installation is
	LinkRemoved   LinkState = "removed"   // the App was uninstalled, or the repository taken from it or deleted
	LinkLost      LinkState = "lost"      // the person may not push there any more
)

// Trouble says what is wrong with a connection and what to do about it, in the words
// that every page, command and log has of it; both are empty if it stands.
func (l RepositoryLink) Trouble() (what, way string) {
	const check = "then press “Check now” on the space's page of GitHub."
	account, repository, login := cmp.Or(l.Account, "the account"), cmp.Or(l.FullName, "the repository"), cmp.Or(l.GitHubLogin, "the person who connected it")
	switch l.State {
	case LinkSuspended:
		return "The GitHub App is suspended at GitHub for " + account + ", so " + repository + " is not synced.",
			"An owner of " + account + " unsuspends it at GitHub, under Settings → Applications → Installed GitHub Apps (of an organisation: Settings → Third-party Access → GitHub Apps); " + check
	case LinkRemoved:
		return "The GitHub App can no longer reach " + repository + ": the App was uninstalled or lost its access, or the repository was deleted.",
			"Install the App again, and choose the repository, on the space's page of GitHub."
	case LinkLost:
		return "On GitHub, " + login + " can no longer push to " + repository + ", so nothing is pushed there.",
			"Ask for the permission again there, and " + check + " Or connect a repository to which you may push."
	}
	return "", ""
}
