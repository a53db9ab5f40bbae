// Package apptest is a GitHub for tests: people, organisations, repositories with
// their permissions, Apps that are made from a manifest, installed, authorised and
// taken away in pages that a browser can press, the REST API under /api/v3 as on a
// GitHub Enterprise server, webhooks, and git over HTTP by the real
// `git http-backend`, all on one loopback origin.
//
//	gh := apptest.Start(t, apptest.Options{})
//	gh.AddPerson("ada")
//	gh.AddRepository(apptest.Repository{Owner: "ada", Name: "notes", Private: true})
//	back := gh.CreateApp("ada", action, manifest) // as her browser would
//	gh.Install(apptest.Installing{App: slug, Account: "ada", By: "ada", Repositories: []string{"ada/notes"}})
//	back, err := gh.Authorize("ada", location)    // her browser at /login/oauth/authorize
//
// It promises to be as strict as GitHub: codes for one use, exact redirect URIs,
// PKCE with S256 alone, errors of the token endpoint with status 200, tokens that
// reach what their installation, permissions and repositories allow, 404 for what
// somebody may not see and 403 for what they may not do, pages of lists. Every
// request and answer of the REST API is validated with GitHub's own OpenAPI
// description (openapi.json.gz, see README.md); what does not fit is a violation,
// which fails the test. At git it is stricter than GitHub: a token that reaches more
// than the one repository is a violation too. It misbehaves exactly as its Behaviour
// says. Only tests import it.
package apptest
