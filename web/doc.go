// Package web is the pages of a server: signing in, consent to what a client
// asks for, invitations, and what a person sees of their account and spaces.
//
// It promises that every page works without JavaScript (passkeys alone need it,
// because browsers offer them no other way), that no page can be framed, that
// none loads anything from elsewhere, and that nothing changes by a GET: what
// previews of links fetch uses nothing up. Every act of a signed-in person needs
// a token that is bound to their session, and comes from a page of this server.
// What belongs to somebody else is answered as what does not exist.
//
// The rights are the stores': a page shows who may do what, and asks again when
// it is sent.
package web
