// Package mailtest is a mail server for tests, on loopback in this process. It speaks SMTP
// with STARTTLS or with TLS from the first byte, under its own authority, and AUTH PLAIN.
// It keeps the mails that arrive.
//
// It accepts a mail only with the order of commands in RFC 5321, and keeps exactly the
// bytes that arrived. It misbehaves only as its Behaviour says. Only tests import it.
package mailtest
