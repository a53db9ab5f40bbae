// Package transport lists the refs of git remotes, fetches from them and pushes to them. It
// works on git directories and URLs, not on spaces. Call [New], then [Client.List],
// [Client.Fetch] and [Client.Push].
//
// A credential reaches only the one git process (through its environment) or the one
// request that needs it, and never an argument, a URL, a file, a log or an error. A user's
// URL only reaches the public internet, whatever its name resolves to and wherever the
// remote redirects. It uses https, or ssh if the operator has set a key. No push is forced.
// Every failure of a remote is an *Error that says in plain words what is wrong and what to
// do.
package transport
