package auth

import (
	"cmp"
	"log/slog"
	"time"

	"satchel/internal/space"
)

// GitHubApp is the GitHub App through which people connect repositories. A server has one.
// Its secrets are encrypted wherever they are stored, and are never printed.
type GitHubApp struct {
	URL      string // the App's GitHub, such as https://github.com
	ID       int64
	ClientID string
	Slug     string
	Name     string
	Owner    string // the login of its owner
	HTMLURL  string // its public page; the install page has a path below it
	// Creates reports whether the App has the permission to create repositories.
	Creates bool
	Created time.Time
	Secrets GitHubSecrets
}

// GitHubSecrets holds the secrets by which the server and GitHub recognize each other.
type GitHubSecrets struct {
	ClientSecret string `json:"client_secret"`
	PrivateKey   string `json:"private_key"` // PEM
	Webhook      string `json:"webhook"`     // empty if GitHub sends no webhooks
}

// String returns a placeholder. Like GoString and LogValue, it keeps the secrets out of all
// output.
func (GitHubSecrets) String() string { return "[secret]" }

// GoString returns the same as String.
func (GitHubSecrets) GoString() string { return "[secret]" }

// LogValue returns the same as String.
func (GitHubSecrets) LogValue() slog.Value { return slog.StringValue("[secret]") }

// RepositoryLink is a GitHub repository that a person connected to a space, after GitHub
// confirmed that they may push to it. The ids identify accounts and the repository; the
// names are only shown to people.
type RepositoryLink struct {
	Space        space.SpaceID
	User         space.UserID // the person who connected it
	GitHubUser   int64        // the ID of their GitHub account
	GitHubLogin  string
	Installation int64
	Account      string // login of the installation's account
	Repository   int64
	FullName     string // owner/name, as GitHub last reported
	State        LinkState
	Since        time.Time // when State began
	Checked      time.Time // when GitHub last confirmed that the person may push
	Created      time.Time
}

// LinkState is the state of a RepositoryLink.
type LinkState string

// The states of a connection.
const (
	LinkConnected LinkState = "connected"
	LinkSuspended LinkState = "suspended" // the installation is suspended
	LinkRemoved   LinkState = "removed"   // the App was uninstalled, or can no longer reach the repository, or the repository was deleted
	LinkLost      LinkState = "lost"      // the person may no longer push to the repository
)

// AtGitHubTab is the argument place of Trouble for all callers but the page with the buttons.
const AtGitHubTab = " in the settings of the space, under GitHub"

// Trouble returns what is wrong with a connection and what to do about it, for all pages,
// commands and logs. Both texts are empty if the connection works. place says where to find the
// buttons that the text way names. It is AtGitHubTab, or empty on the page with the buttons.
func (l RepositoryLink) Trouble(place string) (what, way string) {
	account, repository, login := cmp.Or(l.Account, "the account"), cmp.Or(l.FullName, "the repository"), cmp.Or(l.GitHubLogin, "the person who connected it")
	switch l.State {
	case LinkSuspended:
		return "The GitHub App is suspended at GitHub for " + account + ", so " + repository + " is not synced.",
			"An owner of " + account + " must lift the suspension at GitHub, under Settings → Applications → Installed GitHub Apps, or for an organization under Settings → Third-party Access → GitHub Apps. Then press “Check now”" + place + "."
	case LinkRemoved:
		return "The GitHub App can no longer reach " + repository + ": the App was uninstalled or lost its access, or the repository was deleted.",
			"Install the App again, and choose the repository" + place + "."
	case LinkLost:
		return "On GitHub, " + login + " can no longer push to " + repository + ", so nothing is pushed there.",
			"Ask an owner of the repository for write access, and then press “Check now”" + place + ". Or connect a repository to which you may push."
	}
	return "", ""
}
