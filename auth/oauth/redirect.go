package oauth

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

const (
	maxURL    = 2048
	maxScheme = 64
)

// parsedURL is a URL as a browser reads it. Only a few forms are accepted. Everything on
// which parsers differ is rejected.
type parsedURL struct {
	scheme   string // in lower case
	opaque   bool   // no slash after the colon
	slashes  bool   // has an authority
	userinfo bool
	host     string // with the brackets of IPv6
	port     string
	path     string // from the first slash, with the query
}

var (
	errCharacters = errors.New("it has characters that a URL cannot have")
	errScheme     = errors.New("it has no scheme")
	errHost       = errors.New("its host is malformed")
	errPort       = errors.New("its port is malformed")
)

// parseURL splits a URL. It is stricter than net/url. It does not decode anything, so that
// the compared bytes are the sent bytes.
func parseURL(s string) (parsedURL, error) {
	var u parsedURL
	for i := range len(s) {
		c := s[i]
		// RFC 3986 does not allow these characters anywhere. A browser reads a backslash as
		// a slash, and drops tabs and line ends.
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			return u, errCharacters
		}
		if c == '%' && (i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2])) {
			return u, errCharacters
		}
	}
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || !isScheme(scheme) {
		return u, errScheme
	}
	u.scheme = strings.ToLower(scheme)
	if !strings.HasPrefix(rest, "/") {
		u.opaque, u.path = true, rest
		return u, nil
	}
	authority, ok := strings.CutPrefix(rest, "//")
	if !ok {
		u.path = rest
		return u, nil
	}
	u.slashes = true
	if end := strings.IndexAny(authority, "/?#"); end >= 0 {
		authority, u.path = authority[:end], authority[end:]
	}
	if strings.Contains(authority, "@") {
		u.userinfo = true
		return u, nil
	}
	u.host = authority
	if end := strings.LastIndexByte(authority, ']'); strings.HasPrefix(authority, "[") && end > 0 {
		u.host, u.port = authority[:end+1], authority[end+1:]
		if u.port == "" {
			return u, nil
		}
		if u.port, ok = strings.CutPrefix(u.port, ":"); !ok {
			return u, errHost
		}
	} else if u.host, u.port, ok = strings.Cut(authority, ":"); !ok {
		return u, nil
	}
	if n, err := strconv.ParseUint(u.port, 10, 16); err != nil || n == 0 || u.port[0] == '0' {
		return u, errPort
	}
	return u, nil
}

func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || !(s[i] >= '0' && s[i] <= '9' || strings.IndexByte("+-.", s[i]) >= 0)) {
			return false
		}
	}
	return s != "" && len(s) <= maxScheme
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// checkHost accepts names, and IP addresses in the standard form. Browsers read 0x7f.1 and
// 2130706433 as 127.0.0.1, and every host that ends in a number as an address (WHATWG URL,
// "ends in a number").
func checkHost(host string) error {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !a.Is6() || a.Zone() != "" || a.Is4In6() || "["+a.String()+"]" != host {
			return errHost
		}
		return nil
	}
	if len(host) > 253 {
		return errHost
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
			return errHost
		}
		for i := range len(l) {
			c := l[i]
			if !(c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return errHost
			}
		}
	}
	last := strings.ToLower(labels[len(labels)-1])
	if last[0] >= '0' && last[0] <= '9' {
		a, err := netip.ParseAddr(host)
		if err != nil || a.String() != host {
			return errHost
		}
	}
	return nil
}

// isLoopback reports whether a host is one of the three names of loopback to which a client
// may redirect (RFC 8252 sections 7.3 and 8.3).
func isLoopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "[::1]"
}

// checkRedirect returns an error if a redirect URI is invalid. The error gives the client's
// developer the reason. The valid schemes are https, http to loopback, and the client's own (RFC
// 8252 section 7).
func checkRedirect(s string) (parsedURL, error) {
	if s == "" || len(s) > maxURL {
		return parsedURL{}, errors.New("it must have 1 to " + strconv.Itoa(maxURL) + " characters")
	}
	u, err := parseURL(s)
	switch {
	case err != nil:
		return u, err
	case strings.Contains(s, "#"):
		return u, errors.New("it must not have a fragment") // RFC 6749 section 3.1.2
	case u.userinfo:
		return u, errors.New("it must not have a user")
	}
	switch u.scheme {
	case "https":
		if !u.slashes {
			return u, errHost
		}
		return u, checkHost(u.host)
	case "http":
		if !u.slashes || !isLoopback(u.host) {
			return u, errors.New("http is allowed only for localhost, 127.0.0.1 and [::1]; use https")
		}
		return u, nil
	}
	if reason := refusedScheme(u.scheme); reason != "" {
		return u, errors.New(reason)
	}
	if u.opaque {
		return u, errors.New("a slash must follow the scheme and its colon")
	}
	if u.slashes && u.host != "" {
		return u, checkHost(u.host)
	}
	return u, nil
}

// refusedScheme returns the reason why a scheme cannot be a client's own, or "". The list
// cannot be complete, so the consent page names the scheme and never redirects to it
// automatically.
func refusedScheme(scheme string) string {
	const others = "the scheme is not the client's own"
	for _, prefix := range []string{
		"http", "javascript", "vbscript", "view-source", "web+", "ext+", "ms-", "microsoft", "googlechrome", "firefox", "chrome", "moz-",
		"x-safari", "x-web", "x-apple", "itms", "intent", "android-",
	} {
		if strings.HasPrefix(scheme, prefix) {
			return others
		}
	}
	switch scheme {
	case "about", "acap", "afp", "app-prefs", "app-settings", "blob", "brave", "callto", "cid", "content", "data", "dav", "devtools", "dict", "dns",
		"edge", "facetime", "facetime-audio", "fax", "feed", "file", "filesystem", "finger", "ftp", "ftps", "geo", "git", "gopher", "hcp", "help",
		"im", "imap", "info", "ipp", "ipps", "irc", "ircs", "its", "jar", "jscript", "ldap", "ldaps", "livescript", "magnet", "mailto", "maps",
		"market", "mhtml", "mid", "mk", "mms", "mocha", "news", "nfs", "nntp", "onenote", "opera", "pop", "prefs", "pres", "rdp", "res", "resource",
		"rlogin", "rsync", "rtmp", "rtsp", "safari", "scp", "search", "search-ms", "sftp", "shell", "sip", "sips", "smb", "sms", "smsto", "snmp",
		"ssh", "steam", "svn", "tag", "tel", "telnet", "tftp", "tn3270", "unix", "urn", "vbs", "vivaldi", "vnc", "wais", "webcal", "webcals", "ws",
		"wss", "wyciwyg", "xmpp", "zoommtg":
		return others
	}
	return ""
}

// sameRedirect reports whether a requested redirect is the registered one. The bytes must
// be the same, except that a loopback address may have any port (RFC 8252 section 7.3).
// localhost does not match 127.0.0.1, because different programs may listen on the two.
func sameRedirect(registered, asked string) bool {
	a, err := checkRedirect(asked)
	if err != nil {
		return false
	}
	r, err := checkRedirect(registered) // the rules may be stricter now
	if err != nil {
		return false
	}
	if registered == asked {
		return true
	}
	return a.scheme == "http" && r.scheme == "http" && a.host == r.host && a.path == r.path &&
		strings.HasPrefix(asked, "http:") && strings.HasPrefix(registered, "http:")
}

// withQuery adds parameters to a URL, and does not change the URL's own parameters (RFC
// 6749 section 4.1.2).
func withQuery(target string, pairs ...string) string {
	var b strings.Builder
	b.WriteString(target)
	sep := byte('?')
	if i := strings.IndexByte(target, '?'); i >= 0 {
		sep = '&'
		if last := target[len(target)-1]; last == '?' || last == '&' {
			sep = 0
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if sep != 0 {
			b.WriteByte(sep)
		}
		sep = '&'
		b.WriteString(pairs[i])
		b.WriteByte('=')
		b.WriteString(escape(pairs[i+1]))
	}
	return b.String()
}

// escape encodes a value so that all decoders agree: a space is %20, because not all of
// them decode a plus.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if isUnreserved(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// isUnreserved reports whether c is an unreserved character of RFC 3986 section 2.3. PKCE's
// values also consist of these.
func isUnreserved(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
