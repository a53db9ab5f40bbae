// Package web is the kit of the pages: the site and its layout, sessions, forms,
// flows, static files and streams. Each subject has a package below it that adds
// its pages with Register; package pages makes a whole site.
//
// Every page works without JavaScript, except for passkeys, which browsers offer in
// no other way. No page can be framed, and none loads anything from another site. A
// GET changes nothing, so that a preview of a link uses nothing up. Every form of a
// signed-in person carries a token of their session and comes from a page of this
// server. What belongs to somebody else is answered as if it did not exist.
//
// A page shows what the visitor can do; the operation checks the right again.
package web
