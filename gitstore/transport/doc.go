// Package transport talks to git remotes: what they have, fetching from them
// and pushing to them. It knows git directories and URLs, but no spaces.
//
// It promises that a credential reaches only the one git process, or the one
// request, that needs it, through its environment, and never argv, a URL, a
// file, a log or an error; that a URL which a user gave reaches the public
// internet over https alone, whatever its name resolves to and wherever the
// remote redirects; that nothing is ever forced onto a remote; and that every
// failure comes back as an *Error that says in plain words what is wrong and
// what to do.
package transport
