// Package app connects GitHub repositories to spaces through this server's own GitHub App. [New]
// returns a [Client], whose methods Begin, Finish and Link connect a repository. The Client
// guides an admin through creating the App, asks GitHub which repositories a person may push to,
// and gets tokens that are valid for a single repository. [Client.RecheckAll] checks whether the
// connections are still valid.
//
// The package guarantees:
//
//   - A repository is connected only after a visit of the person to GitHub. During the
//     visit, this server asks GitHub with the person's own token. GitHub confirms that this
//     App is installed on the repository and that the person may push to it.
//   - Data from a browser or a webhook (an installation ID, a repository name, an
//     event) is never trusted. It can only cause a request to GitHub.
//   - An installation token is valid for one repository only, and only for its contents
//     and metadata.
//   - Tokens are never stored on disk or logged, and a person's token is revoked at
//     the end of the visit.
//
// The package logs GitHub's error messages and never shows them. Before it logs a message,
// it shortens the message and removes anything that looks like a token. The package does
// not check permissions: its callers must check that the person may change the space or
// the server.
package app
