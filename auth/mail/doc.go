// Package mail sends short texts, such as one-time sign-in links, through one mail server
// (SMTP, RFC 5321). [New] returns a [Mailer], and [Mailer.Send] sends one mail.
//
// A text leaves the machine only over TLS, to a server with a verified certificate. A server
// on this machine needs no TLS. A password always needs TLS. No recipient, subject or text
// can add a header, a recipient or a second message. A send ends with its context. The answer
// of the mail server is in the error's cause, for the log, and never in the public message.
package mail
