// Package oidctest is an OpenID provider for tests: discovery, keys, an
// authorization endpoint that approves at once, token and userinfo endpoints, on
// loopback in this process.
//
// It promises to be strict where a real one is (registered redirect URI, PKCE
// S256, codes for one use, client authentication, an error for what it does not
// know), and to misbehave exactly as its Behaviour says. Only tests import it.
package oidctest
