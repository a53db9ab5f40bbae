// Package web has what all pages need: the site and its layout, sessions, forms, flows
// (see Flow), static files and streams. Each subject has a package below web that adds its
// pages with Register. Package pages makes the whole site.
//
// Every page works without JavaScript, except for passkeys, which browsers offer only
// to scripts. No page can be framed, and none loads anything from another site. A GET does
// not use up a one-time link, because link previews send GETs too. Every form of a
// signed-in person carries a token of their session and must come from this server.
// To visitors without access, the server says that a page does not exist.
//
// A page offers only what the visitor may do, and the operation checks the right again.
package web
