package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
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

var hostname = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?)*$`)

func host(s string) string {
	if len(s) > 253 || !hostname.MatchString(s) {
		return fmt.Sprintf("%q must be a host name without scheme or port, such as satchel.example.com", s)
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

var prefix = regexp.MustCompile(`^[a-zA-Z0-9_-]{0,32}$`)

// toolPrefix leaves room for the longest tool name in the 64 characters that
// clients take.
func toolPrefix(s string) string {
	if !prefix.MatchString(s) {
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
}
