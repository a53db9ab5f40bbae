// Package githubtest is a stand-in for the part of GitHub that people sign in
// with: the web application flow under /login/oauth, which approves at once, and
// what of the REST API says who somebody is, under /api/v3 as on a GitHub
// Enterprise server, on loopback in this process.
//
// It promises to be as strict as GitHub (PKCE S256 when a challenge came, codes
// for one use, errors of the token endpoint with status 200, scopes), and to
// misbehave exactly as its Behaviour says. Only tests import it.
package githubtest
