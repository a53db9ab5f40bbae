// Package github signs people in with GitHub or a GitHub Enterprise server, by its web
// application flow with PKCE. [New] returns a [Provider]. [Provider.Begin] starts a sign-in, and
// [Provider.Finish] returns the person.
//
// A [satchel/auth.ExternalIdentity] has the person's id, which GitHub never gives to
// anybody else. Its e-mail address is the primary one if GitHub has verified that address, and
// otherwise empty. Its organizations are those in which the person is an active member. The
// person's token is stored nowhere. It is revoked after its use if there is a client secret. Every
// answer is limited in size and time. The package logs GitHub's error texts, and never shows
// them.
package github
