// Package remotetest is a git remote for tests: real repositories behind the
// real `git http-backend`, on loopback, with what goes wrong between a client
// and such a remote: refused credentials, errors and limits of a hosting
// service, refusals of its hooks in their exact words, redirects, connections
// that are cut, slow or lie at any byte of a request or an answer.
//
//	s := remotetest.New(t, remotetest.Options{Password: "secret"})
//	s.Create("notes")
//	s.Push("notes", "main", map[string]string{"a.md": "hello\n"})
//	s.Inject(func(r remotetest.Request) remotetest.Fault { … })
//	client.Fetch(s.URL("notes"), …)
//
// It promises that nothing is left when the test ends: the server waits for
// every request and every process that it started, and all files are under the
// test's temporary directory.
package remotetest
