// Package mail sends short texts, such as one-time sign-in links, through one
// mail server (SMTP, RFC 5321).
//
// It promises that a text leaves the machine over TLS alone, to a server whose
// certificate is verified (only a server on this machine may do without), and
// that a password never leaves it otherwise; that no recipient, subject or text
// can add a header, a recipient or a second message; and that a send ends with
// its context. What the mail server answers is in the error's cause, for the log,
// and never in its public message.
package mail
