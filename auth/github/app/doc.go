// Package app connects GitHub repositories to spaces through this server's own GitHub
// App. It guides an admin through creating the App, asks GitHub which repositories a
// person may push to, gets tokens for a single repository, and regularly checks that
// each connection is still valid.
//
// The package guarantees:
//
//   - A repository is connected only after GitHub has confirmed, for the person's own
//     token and in the same visit, that this App is installed on the repository and
//     that the person may push to it.
//   - Data from a browser or a webhook (an installation ID, a repository name, an
//     event) is never trusted; it only causes a request to GitHub.
//   - An installation token is valid for one repository and its contents only.
//   - Tokens are never stored on disk or logged, and a person's token is revoked at
//     the end of the visit.
//
// GitHub's error messages are truncated, stripped of anything that looks like a token,
// logged, and never shown. The package does not check permissions: its callers must
// check that the person may change the space or the server.
package app
