// Package mailtest is a mail server for tests, on loopback in this process. It speaks SMTP
// over STARTTLS or implicit TLS, with a certificate from its own authority, and supports AUTH
// PLAIN. It keeps the mails that arrive, with dots unstuffed.
//
// It rejects commands that are out of order (RFC 5321), and misbehaves only as its Behaviour
// says. Only tests import it.
package mailtest
