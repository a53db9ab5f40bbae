// Package github serves the pages where an admin creates the GitHub App, and where people
// connect a repository to a space.
package github

import (
	"embed"

	"satchel/auth/github/app"
	"satchel/web"
)

//go:embed templates
var templates embed.FS

type pages struct{ *web.Site }

// Register adds the pages to a site.
func Register(site *web.Site) error {
	s := &pages{site}
	s.HandleAdmin("/admin/github", "GitHub", s.showApp)
	s.Handle("POST /admin/github/manifest", web.LimitPage, web.Admins, s.beginManifest)
	s.Handle("GET "+app.PathCreated, web.LimitPage, web.Admins, s.finishManifest)
	s.Handle("POST /admin/github/enter", web.LimitSignIn, web.Admins, s.enterApp)
	s.Handle("POST /admin/github/forget", web.LimitPage, web.Admins, s.forgetApp)

	s.Handle("GET "+app.PathSetup, web.LimitSignIn, web.Anyone, s.afterInstall)
	s.Handle("GET "+app.PathCallback, web.LimitSignIn, web.Anyone, s.finishGitHub)

	s.HandleSettings(web.SettingsTab{Order: 4, Path: "/github", Name: "GitHub", Find: "GitHub repository", Owner: true}, s.showGitHub)
	s.Handle("POST /spaces/{id}/github/install", web.LimitSignIn, web.SignedIn, s.beginInstall)
	s.Handle("POST /spaces/{id}/github/connect", web.LimitSignIn, web.SignedIn, s.beginConnect)
	s.Handle("GET /spaces/{id}/github/pick", web.LimitPage, web.SignedIn, s.pickRepository)
	s.Handle("POST /spaces/{id}/github/pick", web.LimitSignIn, web.SignedIn, s.linkRepository)
	s.Handle("POST /spaces/{id}/github/create", web.LimitSignIn, web.SignedIn, s.beginCreate)
	s.Handle("POST /spaces/{id}/github/check", web.LimitSignIn, web.SignedIn, s.checkRepository)
	s.Handle("POST /spaces/{id}/github/disconnect", web.LimitPage, web.SignedIn, s.unlinkRepository)
	return s.AddTemplates(templates)
}
