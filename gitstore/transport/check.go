package transport

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/gitstore/commits"
	"satchel/internal/egress"
	"satchel/internal/fault"
)

// The longest URL and branch name, in bytes.
const (
	maxURL    = 2048
	maxBranch = 200
)

// policy determines which URLs are allowed.
type policy struct {
	trusted bool // the operator trusts the URL
	ssh     bool
	ports   []uint16               // the allowed ports of https URLs that users set
	address func(netip.Addr) error // checks an address in a URL that a user set
}

// CheckURL returns an error if a remote's URL is not allowed; trusted means that the
// operator trusts it. The error is a fault.Invalid that says why. A name that resolves to a
// private address is only rejected when it is dialled.
func (c *Client) CheckURL(raw string, trusted bool) error {
	_, err := c.policy(Endpoint{Trusted: trusted}).check(raw)
	return err
}

// Check returns an error if the URL of an endpoint is not allowed with the endpoint's other fields.
func (c *Client) Check(e Endpoint) error {
	_, err := c.policy(e).check(e.URL)
	return err
}

func (c *Client) policy(e Endpoint) policy {
	p := policy{trusted: e.Trusted, ssh: e.SSH != nil, ports: []uint16{443}, address: func(a netip.Addr) error { return egress.Check(a) }}
	if c.o.Egress != nil {
		p.ports, p.address = c.o.Egress.Options().Ports, c.o.Egress.Allowed
	}
	return p
}

// place is a checked URL.
type place struct {
	url      string // the argument for git; for a directory, an absolute path
	protocol string // the protocol that git may use: https, http, ssh or file
	host     string // without port; "this machine" for a directory
	port     uint16 // 0 if the URL names none
	base     string // scheme://host[:port], lower-case; empty for a directory
}

// thisMachine is the host of a directory.
const thisMachine = "this machine"

// transportForm matches git's "helper::address", which runs a program.
var transportForm = expression(`^[A-Za-z0-9][A-Za-z0-9+.-]*::`)

// sshUser matches a user name that ssh cannot mistake for an option.
var sshUser = expression(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// check validates a URL before any part of it reaches git, a resolver or a log.
func (p policy) check(raw string) (place, error) {
	out, err := p.judge(raw)
	if err == nil || p.trusted {
		return out, err
	}
	vouched := p
	vouched.trusted = true
	if _, e := vouched.judge(raw); e == nil {
		err = &untrusted{err}
	}
	return out, err
}

func (p policy) judge(raw string) (place, error) {
	switch {
	case raw == "":
		return place{}, invalid("The remote's URL is empty.")
	case len(raw) > maxURL:
		return place{}, invalid("The remote's URL is longer than %d bytes.", maxURL)
	case p.trusted && filepath.IsAbs(raw):
		return p.checkDirectory(raw)
	case hasCredential(raw):
		return place{}, errCredential()
	case !utf8.ValidString(raw) || strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f || r >= 0x80 || r == '\\' }):
		return place{}, invalid("The remote's URL has a blank, a control character, a backslash or a letter that is not ASCII. Write such letters with %%.")
	case strings.HasPrefix(raw, "-"):
		return place{}, invalid("The remote's URL may not begin with -.")
	case transportForm().MatchString(raw):
		return place{}, invalid("The remote's URL names a program to run (helper::…). Only https:// URLs are allowed.")
	}
	if !strings.Contains(raw, "://") {
		return p.checkDirectory(raw)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return place{}, invalid("The remote's URL is malformed.") // the parser's words could repeat a password
	}
	scheme := strings.ToLower(u.Scheme)
	switch {
	case scheme == "https":
	case scheme == "http" && p.trusted:
	case scheme == "http":
		return place{}, invalid("http:// would send the token and the content in the clear. Use https://.")
	case scheme == "ssh" && p.ssh:
	case scheme == "ssh":
		return place{}, invalid("This server does not use SSH. Give the repository's https URL, and a token. %s", sshKnob)
	case scheme == "file" && p.trusted && u.Host == "":
		return p.checkDirectory(u.Path)
	default:
		return place{}, invalid("Only https:// URLs are allowed.")
	}
	if err := checkUser(u, scheme); err != nil {
		return place{}, err
	}
	if err := checkPath(u); err != nil {
		return place{}, err
	}
	if err := checkPage(u); err != nil { // before the check of the query, which addresses of pages often have
		return place{}, err
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(raw, "#") {
		return place{}, invalid("The remote's URL may have no ? and no #. Leave them out, with what follows.")
	}
	out := place{url: scheme + raw[len(u.Scheme):], protocol: scheme, host: strings.ToLower(u.Hostname()), base: scheme + "://" + strings.ToLower(u.Host)}
	if err := p.checkHost(out.host, u.Host); err != nil {
		return place{}, err
	}
	if text := u.Port(); text != "" || strings.HasSuffix(u.Host, ":") {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return place{}, invalid("The remote's URL has an invalid port.")
		}
		out.port = uint16(n)
	}
	if port := out.port; !p.trusted && scheme == "https" && port != 0 && !slices.Contains(p.ports, port) {
		return place{}, invalid("Port %d is not allowed in a remote's URL.", port)
	}
	if !p.trusted && scheme == "ssh" && out.port != 0 && out.port != 22 {
		return place{}, invalid("Port %d is not allowed in an ssh URL.", out.port)
	}
	return out, nil
}

func checkUser(u *url.URL, scheme string) error {
	if u.User == nil {
		return nil
	}
	if _, has := u.User.Password(); has || scheme != "ssh" {
		return errCredential()
	}
	if !sshUser().MatchString(u.User.Username()) {
		return invalid("The user name in the ssh URL has letters that are not allowed.")
	}
	return nil
}

func checkPath(u *url.URL) error {
	if strings.Trim(u.Path, "/") == "" {
		return invalid("The remote's URL names no repository.")
	}
	if strings.ContainsFunc(u.Path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == utf8.RuneError }) {
		return invalid("The path in the remote's URL has a control character or a backslash.")
	}
	for seg := range strings.SplitSeq(u.Path, "/") {
		if seg == "." || seg == ".." {
			return invalid("The path in the remote's URL has a . or .. segment.")
		}
		if strings.HasPrefix(seg, "-") && u.Scheme == "ssh" {
			return invalid("The path in an ssh URL may have no segment that begins with -.")
		}
	}
	return nil
}

// hostLabel matches a label of a DNS name.
var hostLabel = expression(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

// number matches what some resolvers take for an IPv4 address or a part of one.
var number = expression(`^([0-9]+|0x[0-9a-f]*)$`)

// localSuffixes returns the suffixes of names that only a network's own resolver knows.
func localSuffixes() []string {
	return []string{"localhost", "local", "internal", "intranet", "private", "lan", "home", "corp", "home.arpa", "localdomain"}
}

func (p policy) checkHost(host, withPort string) error {
	if host == "" {
		return invalid("The remote's URL names no host.")
	}
	if strings.Contains(withPort, "[") {
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Zone() != "" {
			return invalid("The remote's URL has an invalid IPv6 address, or one with a zone.")
		}
		return p.checkAddr(addr)
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(host) > 253 || slices.ContainsFunc(labels, func(l string) bool { return !hostLabel().MatchString(l) }) {
		return invalid("%q is not the name of a host.", commits.Cut(host, 80))
	}
	if number().MatchString(labels[len(labels)-1]) {
		addr, err := netip.ParseAddr(host)
		if err != nil { // programs read forms such as 2130706433, 0x7f.1, 0177.0.0.1 and 127.1 differently
			return invalid("%q is an address in a form that is not allowed. Write the host's name.", commits.Cut(host, 80))
		}
		return p.checkAddr(addr)
	}
	if p.trusted {
		return nil
	}
	if len(labels) == 1 && labels[0] != "localhost" {
		return invalid("%q is a name of a local network. Write the whole name of the host.", commits.Cut(host, 80))
	}
	plain := strings.TrimSuffix(host, ".")
	for _, s := range localSuffixes() {
		if plain == s || strings.HasSuffix(plain, "."+s) {
			return p.checkLocalName(host)
		}
	}
	return nil
}

// checkLocalName refuses a local name. It allows localhost if the operator lets users reach
// this machine, as tests do.
func (p policy) checkLocalName(host string) error {
	if host == "localhost" && p.address(netip.AddrFrom4([4]byte{127, 0, 0, 1})) == nil {
		return nil
	}
	return invalid("%q is a name of a local network, which only the people who run this server can use as a remote.", commits.Cut(host, 80))
}

func (p policy) checkAddr(a netip.Addr) error {
	if p.trusted {
		return nil
	}
	if err := p.address(a); err != nil {
		return fault.Wrap(err, fault.Invalid, "%s is an address of this machine or of a local network. Only the people who run this server can use such a remote.", a)
	}
	return nil
}

func (p policy) checkDirectory(path string) (place, error) {
	if err := p.checkSCP(path); err != nil {
		return place{}, err
	}
	if !p.trusted {
		return place{}, invalid("Only https:// URLs are allowed, not paths or names of hosts.%s", p.meant(path))
	}
	if !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl) {
		return place{}, invalid("The path of the directory has a control character, or is not UTF-8.")
	}
	if strings.Contains(path, "://") || !filepath.IsAbs(path) || filepath.Clean(path) != strings.TrimSuffix(path, string(filepath.Separator)) {
		return place{}, invalid("A directory as a remote needs its whole path, without . and .. in it.%s", p.meant(path))
	}
	return place{url: filepath.Clean(path), protocol: "file", host: thisMachine}, nil
}

// CheckBranch returns a fault.Invalid unless a text is a branch name by git's rules
// (git-check-ref-format(1)), cannot be mistaken for an option, and has no invisible
// characters.
func CheckBranch(name string) error {
	bad := func() error { return invalid("%q is not the name of a branch.", commits.Cut(cleanLine(name), 80)) }
	if name == "" || len(name) > maxBranch || !utf8.ValidString(name) || name == "@" || name == "HEAD" ||
		strings.HasPrefix(name, "-") || strings.HasPrefix(name, "refs/") || strings.HasSuffix(name, ".") ||
		strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.ContainsAny(name, "~^:?*[\\") ||
		strings.ContainsFunc(name, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }) {
		return bad()
	}
	for seg := range strings.SplitSeq(name, "/") {
		if seg == "" || strings.HasPrefix(seg, ".") || strings.HasSuffix(seg, ".lock") {
			return bad()
		}
	}
	return nil
}
