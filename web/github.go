package web

import (
	"context"
	"net/url"
	"time"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/internal/space"
)

// GitHubApp is the server's GitHub App. Errors are faults; what they say in public
// is shown.
type GitHubApp interface {
	// App returns the App without its secrets; ok is false if there is none yet.
	App(ctx context.Context) (a auth.GitHubApp, ok bool, err error)
	// Manifest returns what a browser posts to GitHub, as the field manifest, and
	// where to. GitHub sends it back to app.PathCreated with a code and the
	// state.
	Manifest(state string, n app.NewApp) (action string, manifest []byte, err error)
	// Create makes the App of a manifest's code; fault.Conflict if there is one,
	// fault.Invalid for a dead code.
	Create(ctx context.Context, by space.UserID, code string) (auth.GitHubApp, error)
	// Enter proves and keeps an App that was made by hand.
	Enter(ctx context.Context, by space.UserID, a auth.GitHubApp) (auth.GitHubApp, error)
	// Forget drops the App and its secrets; every link becomes a removed one.
	Forget(ctx context.Context, by space.UserID) error
	// InstallURL is where people install the App.
	InstallURL(ctx context.Context, state string) (string, error)
	// Begin returns where to send a browser to say who it is at GitHub, and what
	// Finish must be given.
	Begin(ctx context.Context, redirectURI, state string) (location string, flow []byte, err error)
	// Finish reports what the person who came back may push to; q is the query of
	// their request.
	Finish(ctx context.Context, redirectURI string, flow []byte, q url.Values) (app.Found, error)
	// FinishCreate makes a repository with the person's token first.
	FinishCreate(ctx context.Context, redirectURI string, flow []byte, q url.Values, r app.NewRepository) (app.Found, error)
	// Link connects a repository of f, which must be what Finish returned.
	Link(ctx context.Context, by space.UserID, id space.SpaceID, f app.Found, repository int64) (auth.RepositoryLink, error)
	// Taken reports which repositories other spaces than this are kept in.
	Taken(ctx context.Context, id space.SpaceID) (map[int64]space.SpaceID, error)
	Linked(ctx context.Context, id space.SpaceID) (auth.RepositoryLink, bool, error)
	Unlink(ctx context.Context, by space.UserID, id space.SpaceID) error
	// Recheck asks GitHub now whether the link still holds.
	Recheck(ctx context.Context, id space.SpaceID) (auth.RepositoryLink, error)
	// AskApproval notes that an owner of an organisation was asked to approve the
	// App for a space, and Waiting since when.
	AskApproval(ctx context.Context, id space.SpaceID, user space.UserID) error
	Waiting(ctx context.Context, id space.SpaceID) (since time.Time, ok bool, err error)
}

// routeGitHub adds the pages on which an admin makes the GitHub App, and people
// connect a repository to a space.
func (s *Site) routeGitHub() {
	if s.App == nil {
		return
	}
	s.Handle("GET /admin/github", LimitPage, Admins, s.showApp)
	s.Handle("POST /admin/github/manifest", LimitPage, Admins, s.beginManifest)
	s.Handle("GET "+app.PathCreated, LimitPage, Admins, s.finishManifest)
	s.Handle("POST /admin/github/enter", LimitSignIn, Admins, s.enterApp)
	s.Handle("POST /admin/github/forget", LimitPage, Admins, s.forgetApp)

	s.Handle("GET "+app.PathSetup, LimitSignIn, Anyone, s.afterInstall)
	s.Handle("GET "+app.PathCallback, LimitSignIn, Anyone, s.finishGitHub)

	s.Handle("GET /spaces/{id}/github", LimitPage, SignedIn, s.showGitHub)
	s.Handle("POST /spaces/{id}/github/install", LimitSignIn, SignedIn, s.beginInstall)
	s.Handle("POST /spaces/{id}/github/connect", LimitSignIn, SignedIn, s.beginConnect)
	s.Handle("GET /spaces/{id}/github/pick", LimitPage, SignedIn, s.pickRepository)
	s.Handle("POST /spaces/{id}/github/pick", LimitSignIn, SignedIn, s.linkRepository)
	s.Handle("POST /spaces/{id}/github/create", LimitSignIn, SignedIn, s.beginCreate)
	s.Handle("POST /spaces/{id}/github/check", LimitSignIn, SignedIn, s.checkRepository)
	s.Handle("POST /spaces/{id}/github/disconnect", LimitPage, SignedIn, s.unlinkRepository)
}
