// Package web is the kit of the pages: the site and its layout, sessions, forms,
// flows, static files and streams. Each subject has a package below it that adds
// its pages with Register; package pages makes a whole site.
//
// Every page works without JavaScript, except for passkeys, which browsers offer only
// to scripts. No page can be framed, and none loads anything from another site. A GET
// changes nothing, so that a link preview does not use up a one-time link. Every form of
// a signed-in person carries a token of their session and must come from this server.
// For visitors without access, a page does not exist.
//
// A page shows what the visitor can do; the operation checks the right again.
package web
