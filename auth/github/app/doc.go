// Package app connects repositories at GitHub to spaces, by a GitHub App of this
// server's own: it has an admin make the App, asks GitHub what a person may push
// to, gets tokens for one repository, and looks again from time to time whether
// all of that still holds.
//
// It promises that a repository is connected only after GitHub said, with the
// person's own token and in the same visit, that this App is installed where the
// repository is and that the person may push to it; that nothing which a browser
// or a webhook brings (an installation's id, a repository's name, an event) is
// taken for more than a reason to ask GitHub; that a token it gets is good for the
// one repository and for its contents alone; and that a token is never written
// anywhere, and a person's is revoked once their answers are there.
//
// What GitHub sends as an error's text is logged, cut and without what looks like
// a token, and never shown. It asks nobody for permission: whoever calls an act has
// checked that the person may do it to the space or the server.
package app
