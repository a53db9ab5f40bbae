package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Checks of one value return what is wrong with it, or "".

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

func absolute(s string) string {
	if s != "" && !filepath.IsAbs(s) {
		return fmt.Sprintf("%q must be an absolute path", s)
	}
	return ""
}

// address checks HOST:PORT; the host may be empty for all addresses, and the
// port 0 for any.
func address(s string) string {
	if s == "" {
		return ""
	}
	h, port, err := net.SplitHostPort(s)
	if err == nil {
		if n, notNumber := strconv.ParseUint(port, 10, 64); notNumber == nil && n > 65535 {
			return fmt.Sprintf("%s is no port (1-65535)", port)
		}
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || h != "" && net.ParseIP(h) == nil && host(h) != "" {
		return fmt.Sprintf("%q must be an address and a port, such as 127.0.0.1:8080 or [::1]:8080", s)
	}
	return ""
}

func publicURL(s string) string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Opaque != "":
		return "it must be a URL such as https://satchel.example.com"
	case u.User != nil:
		return "it must not have a user or a password"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(s, "#"):
		return "it must not have a query or a fragment"
	case u.Path != "" && u.Path != "/":
		return "it must not have a path: the server's pages are at the root of its host"
	}
	return ""
}

// domain checks a name for which an authority gives certificates.
func domain(s string) string {
	if s == "" {
		return ""
	}
	if !hostname(s) || !strings.Contains(s, ".") || net.ParseIP(s) != nil || s != strings.ToLower(s) {
		return "it must be a domain name in lower case, such as satchel.example.com"
	}
	return ""
}

// endpointURL checks where a model is served: the operator's choice, on any
// network.
func endpointURL(s string) string {
	if socket, ok := strings.CutPrefix(s, "unix:"); ok {
		return absolute(socket)
	}
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Opaque != "":
		return "it must be a URL such as http://127.0.0.1:11434/v1"
	case u.User != nil:
		return "it must not have a user or a password; there is a key for that"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(s, "#"):
		return "it must not have a query or a fragment"
	}
	return ""
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

// hostname tells whether a text is a host's name: at most 253 characters, in
// labels of at most 63. Loops, since a pattern would be compiled in every
// process of this program.
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

// plain tells whether all bytes of s are ASCII letters, digits, - or _.
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

// databaseURL checks the scheme alone, and never shows the value; opening the
// database judges the rest.
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

// toolPrefix leaves room for the longest tool name in the 64 characters that
// clients take.
func toolPrefix(s string) string {
	if len(s) > 32 || !plain(s) {
		return fmt.Sprintf("%q must be at most 32 letters, digits, - and _", s)
	}
	return ""
}

// relation is a rule about two keys.
type relation struct {
	key, other string
	broken     func(c *Config) bool
	why        string
}

// relations are told at the first key, and only where both keys are good by
// themselves.
var relations = []relation{
	{"server.metrics", "server.listen", func(c *Config) bool {
		return c.Server.Metrics == c.Server.Listen && !strings.HasSuffix(c.Server.Metrics, ":0")
	},
		"it must be another address than server.listen, so that metrics stay inside"},
	{"server.domain", "server.public_url", func(c *Config) bool { return c.Server.Domain != "" && c.Server.PublicURL != "" },
		"give one of the two: with a domain, the public URL is https and that domain"},
	{"auth.refresh_reuse", "auth.refresh_lifetime", func(c *Config) bool { return c.Auth.RefreshReuse > c.Auth.RefreshLifetime },
		"it may not be more than auth.refresh_lifetime"},
	{"auth.oidc.url", "auth.oidc.client_id", func(c *Config) bool { return c.Auth.OIDC.URL != "" && c.Auth.OIDC.ClientID == "" },
		"it needs auth.oidc.client_id"},
	{"auth.github.client_id", "auth.github.client_secret", func(c *Config) bool {
		return c.Auth.GitHub.ClientID != "" && c.Auth.GitHub.ClientSecret == "" && c.Auth.GitHub.ClientSecretFile == ""
	},
		"it needs auth.github.client_secret or auth.github.client_secret_file"},
	{"auth.mail.url", "auth.mail.from", func(c *Config) bool { return c.Auth.Mail.URL != "" && c.Auth.Mail.From == "" },
		"it needs auth.mail.from"},
	{"auth.mail.from", "server.public_url", func(c *Config) bool {
		return c.Auth.Mail.URL != "" && c.Server.PublicURL == "" && c.Server.Domain == "" && !strings.HasPrefix(c.Server.Listen, "127.")
	},
		"links in mails need server.public_url or server.domain"},
	{"auth.oidc.client_secret_file", "auth.oidc.client_secret", func(c *Config) bool { return c.Auth.OIDC.ClientSecretFile != "" && c.Auth.OIDC.ClientSecret != "" },
		"give one of the two"},
	{"auth.github.client_secret_file", "auth.github.client_secret", func(c *Config) bool {
		return c.Auth.GitHub.ClientSecretFile != "" && c.Auth.GitHub.ClientSecret != ""
	},
		"give one of the two"},
	{"sandbox.memory", "sandbox.total_memory", func(c *Config) bool { return c.Sandbox.Memory > c.Sandbox.TotalMemory },
		"one sandbox may not have more than sandbox.total_memory"},
	{"sandbox.disk", "sandbox.memory", func(c *Config) bool { return c.Sandbox.Disk > c.Sandbox.Memory },
		"changed files are held in memory, so it may not be more than sandbox.memory"},
	{"sandbox.tmp", "sandbox.memory", func(c *Config) bool { return c.Sandbox.Tmp > c.Sandbox.Memory },
		"/tmp is held in memory, so it may not be more than sandbox.memory"},
	{"sandbox.detach_after", "sandbox.wall_time", func(c *Config) bool { return c.Sandbox.DetachAfter > c.Sandbox.WallTime },
		"it may not be more than sandbox.wall_time, by which the command has ended"},
	{"space.max_file", "space.max_change", func(c *Config) bool { return c.Space.MaxFile > c.Space.MaxChange },
		"it may not be more than space.max_change, or such a file could never be committed"},
	{"space.max_change", "space.max_size", func(c *Config) bool { return c.Space.MaxChange > c.Space.MaxSize },
		"it may not be more than space.max_size"},
	{"remotes.retry_min", "remotes.retry_max", func(c *Config) bool { return c.Remotes.RetryMin > c.Remotes.RetryMax },
		"it may not be more than remotes.retry_max"},
	{"remotes.ssh_key", "remotes.ssh_known_hosts", func(c *Config) bool { return c.Remotes.SSHKey != "" && c.Remotes.SSHKnownHosts == "" },
		"it needs remotes.ssh_known_hosts, without which any host could pretend to be another"},
	{"search.embeddings.url", "search.embeddings.model", func(c *Config) bool { return c.Search.Embeddings.URL != "" && c.Search.Embeddings.Model == "" },
		"it needs search.embeddings.model"},
	{"search.embeddings.model", "search.embeddings.url", func(c *Config) bool {
		return c.Search.Embeddings.URL == "" && absolute(c.Search.Embeddings.Model) != ""
	},
		"without search.embeddings.url it must be the absolute path of a directory"},
	{"search.expand.url", "search.expand.model", func(c *Config) bool { return c.Search.Expand.URL != "" && c.Search.Expand.Model == "" },
		"it needs search.expand.model"},
	{"search.embeddings.key_file", "search.embeddings.key", func(c *Config) bool { return c.Search.Embeddings.KeyFile != "" && c.Search.Embeddings.Key != "" },
		"give one of the two"},
	{"search.rerank.key_file", "search.rerank.key", func(c *Config) bool { return c.Search.Rerank.KeyFile != "" && c.Search.Rerank.Key != "" },
		"give one of the two"},
	{"search.expand.key_file", "search.expand.key", func(c *Config) bool { return c.Search.Expand.KeyFile != "" && c.Search.Expand.Key != "" },
		"give one of the two"},
}
