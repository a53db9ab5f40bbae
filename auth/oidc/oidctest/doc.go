// Package oidctest is an OpenID provider for tests. It has discovery, keys, an
// authorization endpoint that approves at once, and token and userinfo endpoints. It
// listens on loopback in this process. [New] starts a [Server].
//
// It is as strict as a real provider: it requires a registered redirect URI, PKCE with S256
// and client authentication, accepts a code once, and refuses unknown input. It misbehaves
// only as its Behaviour says. Only tests import it.
package oidctest
