package acme

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/acme"
)

// explain returns the meaning of a failure and its remedy, in a few sentences.
func explain(err error, domain string) string {
	if failed, ok := errors.AsType[challengeErrors](err); ok {
		var all []string
		for _, c := range failed {
			port := "443"
			if c.typ == http01 {
				port = "80"
			}
			if s := explainOne(c.err, domain, port); !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		return strings.Join(all, " ")
	}
	return explainOne(err, domain, "443")
}

func explainOne(err error, domain, port string) string {
	if p := problemOf(err); p != nil {
		if s := explainProblem(kind(p), domain, port); s != "" {
			if p.Detail != "" && kind(p) != "rateLimited" {
				s += " The authority says: " + clean(p.Detail)
			}
			return s
		}
		return fmt.Sprintf("The authority refuses: %s (%s).", clean(p.Detail), clean(kind(p)))
	}
	_, unknownAuthority := errors.AsType[x509.UnknownAuthorityError](err)
	_, otherHost := errors.AsType[x509.HostnameError](err)
	_, path := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	switch {
	case errors.Is(err, errNotOffered):
		return "The authority does not check names over port " + port + "."
	case unknownAuthority || otherHost:
		return "The certificate of the authority's own directory is not trusted: check server.acme_url, and if its authority is private, name it in server.acme_ca_file."
	case unreachable(err):
		return "The authority cannot be reached from here: let the server connect to the internet over https, and check server.acme_url."
	case errors.Is(err, context.DeadlineExceeded):
		return "The authority did not finish in time. It is asked again."
	case path || link:
		return "The files of the certificate cannot be read or written: " + err.Error() + "."
	}
	return "The authority did not give a certificate: " + clean(err.Error())
}

func explainProblem(kind, domain, port string) string {
	switch kind {
	case "dns":
		return "The authority finds no address for " + domain + ": make an A record (and an AAAA record, where the server has IPv6) that points to this server."
	case "connection":
		return "The authority cannot connect to " + domain + " on port " + port + ": let the DNS records point to this server, and open that port in its firewall and on its router."
	case "tls", "unauthorized", "incorrectResponse":
		s := "The authority finds something else than this server under " + domain + " on port " + port + ": let all its A and AAAA records point here, and that port lead to this server"
		if port == "443" {
			s += ", with no proxy in between that ends TLS"
		}
		return s + "."
	case "caa":
		return "A CAA record of " + domain + " does not let this authority give certificates: add it to the record, or configure another one."
	case "rateLimited":
		return "The authority's limit for " + domain + " is reached: there is nothing to do but to wait until it is asked again."
	case "rejectedIdentifier", "unsupportedIdentifier":
		return "The authority gives no certificates for " + domain + ": server.domain must be a public name that is yours."
	case "accountDoesNotExist":
		return "The authority no longer knows this server's account: another is made at the next attempt."
	case "externalAccountRequired":
		return "This authority wants an account that was made with it beforehand, which Satchel does not support: configure another one."
	case "invalidContact", "unsupportedContact":
		return "The authority does not take the address in server.acme_email: change it, or leave it empty."
	case "serverInternal":
		return "The authority has trouble of its own. It is asked again."
	}
	return ""
}

// unreachable reports whether the authority could not be reached.
func unreachable(err error) bool {
	_, network := errors.AsType[*net.OpError](err)
	_, dns := errors.AsType[*net.DNSError](err)
	return network || dns
}

// problemOf returns the authority's own description of a failure (RFC 7807).
func problemOf(err error) *acme.Error {
	if a, ok := errors.AsType[*acme.AuthorizationError](err); ok {
		for _, e := range a.Errors {
			if p, ok := errors.AsType[*acme.Error](e); ok {
				return p
			}
		}
	}
	if o, ok := errors.AsType[*acme.OrderError](err); ok && o.Problem != nil {
		return o.Problem
	}
	p, _ := errors.AsType[*acme.Error](err)
	return p
}

// kind returns the last word of a problem's type, as in RFC 8555 section 6.7.
func kind(p *acme.Error) string {
	return p.ProblemType[strings.LastIndexByte(p.ProblemType, ':')+1:]
}

func isProblem(err error, k string) bool {
	p := problemOf(err)
	return p != nil && kind(p) == k
}

// retryAfter returns how long the authority asks to wait, or 0.
func retryAfter(err error) time.Duration {
	p := problemOf(err)
	if p == nil {
		return 0
	}
	if d, ok := acme.RateLimit(p); ok && d > 0 {
		return d
	}
	return 0
}

// clean returns a text from another server in a form that fits on one line.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:500], "") + "…"
	}
	return s
}
