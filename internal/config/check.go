package config

import (
	"cmp"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A check is a function that returns the problem with a value, or "" if there is none.

func between[T cmp.Ordered](lo, hi T, format func(T) string) func(T) string {
	return func(v T) string {
		if v < lo || v > hi {
			return fmt.Sprintf("%s is out of range: it must be from %s to %s", format(v), format(lo), format(hi))
		}
		return ""
	}
}

func numbers[T int | int64 | float64](lo, hi T) func(T) string {
	return between(lo, hi, func(v T) string { return strconv.FormatFloat(float64(v), 'f', -1, 64) })
}

func sizes(lo, hi int64) func(int64) string { return between(lo, hi, FormatSize) }

func durations(lo, hi time.Duration) func(time.Duration) string {
	return between(lo, hi, FormatDuration)
}

func eachOf(check func(string) string) func([]string) string {
	return func(l []string) string {
		for _, s := range l {
			if why := check(s); why != "" {
				return why
			}
		}
		return ""
	}
}

func required(s string) string {
	if s == "" {
		return "it must not be empty"
	}
	return ""
}

func notEmpty(l []string) string {
	if len(l) == 0 {
		return "it must have at least one entry"
	}
	return ""
}

// secretFile checks the path of a file with a secret.
func secretFile(s Secret) string {
	if path, ok := strings.CutPrefix(string(s), inFile); ok && !filepath.IsAbs(path) {
		return "after file: there must be an absolute path"
	}
	return ""
}

func absolute(s string) string {
	if s != "" && !filepath.IsAbs(s) {
		return fmt.Sprintf("%q must be an absolute path", s)
	}
	return ""
}

// address checks HOST:PORT. An empty host means all addresses, and port 0 means any port.
func address(s string) string {
	if s == "" {
		return ""
	}
	h, port, err := net.SplitHostPort(s)
	if err == nil {
		if n, notNumber := strconv.ParseUint(port, 10, 64); notNumber == nil && n > 65535 {
			return fmt.Sprintf("%s is not a port (0-65535)", port)
		}
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || h != "" && net.ParseIP(h) == nil && host(h) != "" {
		return fmt.Sprintf("%q must be an address and a port, such as 127.0.0.1:8080 or [::1]:8080", s)
	}
	return ""
}

// webURL checks the URL of a server. like is an example for the message. An empty text is
// valid.
func webURL(s, like string) (u *url.URL, why string) {
	if s == "" {
		return nil, ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Opaque != "":
		return nil, "it must be a URL such as " + like
	case u.User != nil:
		return nil, "it must not have a user or a password"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(s, "#"):
		return nil, "it must not have a query or a fragment"
	}
	return u, ""
}

func publicURL(s string) string {
	u, why := webURL(s, "https://satchel.example.com")
	switch {
	case u == nil:
		return why
	case !hostname(u.Hostname()) && net.ParseIP(u.Hostname()) == nil:
		return "its host must be a host name or an IP address"
	case u.Path != "" && u.Path != "/":
		return "it must not have a path: the server's pages are at the root of its host"
	}
	return ""
}

// domain checks a name for which authorities issue certificates.
func domain(s string) string {
	if s == "" {
		return ""
	}
	if !hostname(s) || !strings.Contains(s, ".") || net.ParseIP(s) != nil || s != strings.ToLower(s) {
		return "it must be a domain name in lower case, such as satchel.example.com"
	}
	return ""
}

// acmeURL checks the URL of an ACME directory. It may be in any network.
func acmeURL(s string) string {
	_, why := webURL(s, "https://acme-v02.api.letsencrypt.org/directory")
	return why
}

// endpointURL checks the URL of a model, which may be in any network. It also accepts unix: and the
// absolute path of a socket.
func endpointURL(s string) string {
	if socket, ok := strings.CutPrefix(s, "unix:"); ok {
		return absolute(socket)
	}
	_, why := webURL(s, "http://127.0.0.1:11434/v1")
	return why
}

func short(s string) string {
	if len(s) > 1000 {
		return "it must have at most 1000 bytes"
	}
	return ""
}

func host(s string) string {
	if !hostname(s) {
		return fmt.Sprintf("%q must be a host name without scheme or port, such as satchel.example.com", s)
	}
	return ""
}

// hostname reports whether a text is a host name: at most 253 characters, in labels of at
// most 63. It uses loops, because a regular expression would be compiled in every process
// of this program.
func hostname(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || !alphanumeric(label[0]) || !alphanumeric(label[len(label)-1]) || !plain(label) {
			return false
		}
	}
	return true
}

// plain reports whether all bytes of s are ASCII letters, digits, - or _.
func plain(s string) bool {
	for _, b := range []byte(s) {
		if !alphanumeric(b) && b != '-' && b != '_' {
			return false
		}
	}
	return true
}

func alphanumeric(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}

func network(s string) string {
	if p, err := netip.ParsePrefix(s); err != nil || p != p.Masked() {
		return fmt.Sprintf("%q must be a network with its length, such as 10.1.0.0/16", s)
	}
	return ""
}

func port(s string) string {
	if n, err := strconv.ParseUint(s, 10, 16); err != nil || n == 0 {
		return fmt.Sprintf("%q must be a port from 1 to 65535", s)
	}
	return ""
}

func origin(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Scheme+"://"+u.Host != s || s != strings.ToLower(s) {
		return fmt.Sprintf("%q must be an origin in lower case, such as https://app.example.com, without a path", s)
	}
	return ""
}

// databaseURL checks only the scheme, and never shows the value. Opening the database
// checks the rest.
func databaseURL(s string) string {
	for _, scheme := range []string{"sqlite:", "postgres://", "postgresql://"} {
		if strings.HasPrefix(s, scheme) {
			return ""
		}
	}
	if s == "" {
		return ""
	}
	return "it must begin with sqlite: or postgres://"
}

// toolPrefix checks that the longest tool name with this prefix has at most 64 characters.
// Clients accept no more.
func toolPrefix(s string) string {
	if len(s) > 32 || !plain(s) {
		return fmt.Sprintf("%q must be at most 32 letters, digits, - and _", s)
	}
	return ""
}

func emailAddress(s string) string {
	if a, err := mail.ParseAddress(s); err != nil || a.Address != s {
		return fmt.Sprintf("%q must be an address such as ada@example.com", s)
	}
	return ""
}

func mailbox(s string) string {
	if s == "" {
		return ""
	}
	a, err := mail.ParseAddress(s)
	if err != nil {
		return "it must be an address such as Satchel <satchel@example.com>"
	}
	for _, b := range []byte(a.Address) {
		if b >= 0x80 {
			return "the address itself must have only ASCII characters"
		}
	}
	return ""
}

// githubName checks the name of a GitHub user or organization: letters, digits and hyphens,
// and an underscore in the names of enterprise-managed users.
func githubName(s string) string {
	if s == "" || len(s) > 100 || !plain(s) {
		return fmt.Sprintf("%q must be a GitHub name", s)
	}
	return ""
}

// issuerURL checks the address of another server that signs people in. It must be https, or
// http on this machine. It must match the issuer's own address byte for byte (RFC 8414
// section 3.3).
func issuerURL(s string) string {
	u, why := webURL(s, "https://login.example.com")
	if u != nil && u.Scheme == "http" && !thisMachine(u.Hostname()) {
		return "it must begin with https://, since secrets are sent there"
	}
	return why
}

func thisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

func scopeName(s string) string {
	if s != "read" && s != "write" {
		return fmt.Sprintf("%q must be read or write", s)
	}
	return ""
}

func claimPair(s string) string {
	if name, _, ok := strings.Cut(s, "="); !ok || name == "" {
		return fmt.Sprintf("%q must be of the form NAME=VALUE", s)
	}
	return ""
}

func mailURL(s string) string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || u.Opaque != "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "it must be of the form smtps://user@host or smtp://user@host:587"
	}
	return ""
}

// relation is a rule about two keys.
type relation struct {
	key, other string
	broken     bool
	why        string
}

// relations returns the rules about pairs of keys. A broken rule is reported only if both keys
// are valid on their own.
func (c *Config) relations() []relation {
	s, a, box, r, m := &c.Server, &c.Auth, &c.Sandbox, &c.Remotes, &c.Search
	return []relation{
		{"server.metrics", "server.listen", s.Metrics == s.Listen && !strings.HasSuffix(s.Metrics, ":0"),
			"it must be another address than server.listen, so that metrics stay inside"},
		{"server.domain", "server.public_url", s.Domain != "" && s.PublicURL != "",
			"give one of the two: with a domain, the public URL is https and that domain"},
		{"auth.oidc.url", "auth.oidc.client_id", a.OIDC.URL != "" && a.OIDC.ClientID == "", "it needs auth.oidc.client_id"},
		{"auth.github.client_id", "auth.github.client_secret", a.GitHub.ClientID != "" && a.GitHub.ClientSecret == "", "it needs auth.github.client_secret"},
		{"auth.mail.url", "auth.mail.from", a.Mail.URL != "" && a.Mail.From == "", "it needs auth.mail.from"},
		{"auth.mail.from", "server.public_url", a.Mail.URL != "" && s.PublicURL == "" && s.Domain == "" && !strings.HasPrefix(s.Listen, "127."),
			"links in mails need server.public_url or server.domain"},
		{"sandbox.memory", "sandbox.total_memory", box.Memory > box.TotalMemory, "one sandbox may not have more than sandbox.total_memory"},
		{"sandbox.disk", "sandbox.memory", box.Disk > box.Memory, "changed files are held in memory, so it may not be more than sandbox.memory"},
		{"sandbox.detach_after", "sandbox.wall_time", box.DetachAfter > box.WallTime, "it may not be more than sandbox.wall_time, by which the command has ended"},
		{"space.max_file", "space.max_size", c.Space.MaxFile > c.Space.MaxSize, "it may not be more than space.max_size"},
		{"remotes.ssh_key", "remotes.ssh_known_hosts", r.SSHKey != "" && r.SSHKnownHosts == "",
			"it needs remotes.ssh_known_hosts, without which any host could pretend to be another"},
		{"snapshot.repo", "snapshot.token", c.Snapshot.Repo != "" && c.Snapshot.Token == "" && !strings.HasPrefix(c.Snapshot.Repo, "ssh://"),
			"it needs snapshot.token, or an ssh:// URL"},
		{"search.embeddings.url", "search.embeddings.model", m.Embeddings.URL != "" && m.Embeddings.Name == "", "it needs search.embeddings.model"},
		{"search.embeddings.model", "search.embeddings.url", m.Embeddings.URL == "" && absolute(m.Embeddings.Name) != "",
			"without search.embeddings.url it must be the absolute path of a directory"},
		{"search.expand.url", "search.expand.model", m.Expand.URL != "" && m.Expand.Name == "", "it needs search.expand.model"},
	}
}
