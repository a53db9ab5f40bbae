// Package remotetest provides a git remote for tests: real repositories behind the real
// `git http-backend`, on loopback. Tests can inject what goes wrong with such a remote:
// refused credentials, errors and limits of a hosting service, refusals in the exact
// words of its hooks, redirects, and connections that are cut, slow or corrupt at any
// byte of a request or an answer.
//
//	s := remotetest.New(t, remotetest.Options{Password: "secret"})
//	s.Create("notes")
//	s.Push("notes", "main", map[string]string{"a.md": "hello\n"})
//	s.Inject(func(r remotetest.Request) remotetest.Fault { … })
//	client.Fetch(s.URL("notes"), …)
//
// The server leaves nothing behind when the test ends: it waits for every request and
// every process that it started, and all files are under the test's temporary directory.
package remotetest
