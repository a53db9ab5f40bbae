// Package githubtest simulates the part of GitHub with which people sign in. It has the web
// application flow under /login/oauth, which approves at once. It also has the part of the
// REST API that describes a person, under /api/v3 as on a GitHub Enterprise server. It
// listens on loopback in this process.
//
// It is as strict as GitHub: it checks PKCE with S256 if there is a challenge, accepts a
// code once, answers errors of the token endpoint with status 200, and checks scopes. It
// misbehaves only as its Behaviour says. Only tests import it.
package githubtest
