// Package mailtest is a mail server for tests, on loopback in this process: SMTP
// with STARTTLS or with TLS from the first byte under an authority of its own,
// AUTH PLAIN, and the mails that came.
//
// It promises to take a mail only in the order of commands that RFC 5321 wants,
// to keep exactly the bytes that came, and to misbehave exactly as its Behaviour
// says. Only tests import it.
package mailtest
