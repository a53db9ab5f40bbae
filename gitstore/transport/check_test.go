package transport_test

import (
	"net/netip"
	"strings"
	"testing"

	"satchel/gitstore/transport"
	"satchel/internal/egress"
	"satchel/internal/fault"
	"satchel/internal/testenv"
)

// urls lists URLs of remotes, with whether a user and whether the operator may use them. A URL
// that a user may not use has the name of its attack.
var urls = []struct {
	attack, url    string
	user, operator bool
}{
	{"", "https://github.com/octo/notes.git", true, true},
	{"", "https://github.com/octo/notes", true, true},
	{"", "https://github.com:443/octo/notes.git", true, true},
	{"", "HTTPS://GitHub.com/octo/notes.git", true, true},
	{"", "https://git.example.co.uk/group/sub-group/notes_1.git/", true, true},
	{"", "https://xn--bcher-kva.example/notes.git", true, true},
	{"", "https://example.org/%7Eme/notes%20of%20mine.git", true, true},
	{"", "https://140.82.112.3/octo/notes.git", true, true},
	{"", "https://[2606:50c0:8000::153]/octo/notes.git", true, true},
	{"", "https://github.com./octo/notes.git", true, true},

	{"a local file", "file:///etc/passwd", false, true},
	{"a local file", "file:/etc/passwd", false, false},
	{"a local file", "FILE:///srv/git/notes.git", false, true},
	{"a file of another host", "file://host/share/notes.git", false, false},
	{"a plain path", "/srv/git/notes.git", false, true},
	{"a plain path", "/srv/my notes/Bücher::x.git", false, true},
	{"a path with a new line", "/srv/git/a\nb", false, false},
	{"a path with NUL", "/srv/git/a\x00b", false, false},
	{"a path with an escape sequence", "file:///srv/git/a%1b[2Jb", false, false},
	{"a path that goes up", "/srv/git/../../etc", false, false},
	{"a path that goes up", "file:///srv/git/../../etc", false, false},
	{"a relative path", "../notes.git", false, false},
	{"a relative path", "notes", false, false},
	{"a home path", "~/notes.git", false, false},
	{"a Windows path", `C:\notes.git`, false, false},
	{"a share", `\\host\share\notes.git`, false, false},
	{"a program to run", "ext::sh -c 'touch /tmp/x'", false, false},
	{"a program to run", "ext::sh%20-c%20touch", false, false},
	{"a program to run", "Ext::sh", false, false},
	{"a file descriptor", "fd::17/foo", false, false},
	{"a helper", "https::https://github.com/octo/notes", false, false},
	{"a helper", "git-remote-x::https://github.com/octo/notes", false, false},
	{"an option of git", "-oProxyCommand=touch /tmp/x", false, false},
	{"an option of git", "--upload-pack=touch", false, false},
	{"an option of ssh", "ssh://-oProxyCommand=touch/x", false, false},
	{"an option of ssh", "ssh://-oProxyCommand=touch%20x/octo/notes", false, false},
	{"another protocol", "ssh://git@github.com/octo/notes.git", false, false}, // only with the configuration of SSH
	{"another protocol", "git@github.com:octo/notes.git", false, false},
	{"another protocol", "github.com:octo/notes.git", false, false},
	{"another protocol", "git://github.com/octo/notes.git", false, false},
	{"another protocol", "git+ssh://github.com/octo/notes.git", false, false},
	{"another protocol", "ftp://example.org/notes.git", false, false},
	{"another protocol", "gopher://127.0.0.1:25/_x", false, false},
	{"another protocol", "dict://127.0.0.1:11211/stat", false, false},
	{"another protocol", "rsync://example.org/x", false, false},
	{"another protocol", "javascript://x/%0aalert(1)", false, false},
	{"content in the clear", "http://github.com/octo/notes.git", false, true},
	{"no protocol", "//github.com/octo/notes.git", false, false},
	{"no protocol", "://github.com/octo", false, false},

	{"a credential in the URL", "https://me:token@github.com/octo/notes.git", false, false},
	{"a credential in the URL", "https://token@github.com/octo/notes.git", false, false},
	{"a credential in the URL", "https://@github.com/octo/notes.git", false, false},
	{"another host behind userinfo", "https://github.com@127.0.0.1/x", false, false},
	{"another host behind userinfo", "https://github.com:443@169.254.169.254/x", false, false},
	{"another host behind userinfo", "https://github.com%2f@127.0.0.1/x", false, false},
	{"another host behind a backslash", `https://github.com\@127.0.0.1/x`, false, false},
	{"another host behind #", "https://127.0.0.1#@github.com/x", false, false},
	{"another host behind ?", "https://127.0.0.1?@github.com/x", false, false},
	{"a query", "https://github.com/octo/notes.git?service=git-receive-pack", false, false},
	{"an empty query", "https://github.com/octo/notes.git?", false, false},
	{"a fragment", "https://github.com/octo/notes.git#main", false, false},
	{"an empty fragment", "https://github.com/octo/notes.git#", false, false},

	{"loopback", "https://127.0.0.1/notes.git", false, true},
	{"loopback", "https://127.1.2.3/notes.git", false, true},
	{"loopback", "https://[::1]/notes.git", false, true},
	{"loopback, mapped", "https://[::ffff:127.0.0.1]/notes.git", false, true},
	{"loopback, mapped", "https://[::ffff:7f00:1]/notes.git", false, true},
	{"loopback, compatible", "https://[::127.0.0.1]/notes.git", false, true},
	{"loopback, NAT64", "https://[64:ff9b::7f00:1]/notes.git", false, true},
	{"loopback, 6to4", "https://[2002:7f00:1::]/notes.git", false, true},
	{"loopback, zone", "https://[::1%25lo]/notes.git", false, false},
	{"loopback, decimal", "https://2130706433/notes.git", false, false},
	{"loopback, hexadecimal", "https://0x7f000001/notes.git", false, false},
	{"loopback, hexadecimal", "https://0X7F.0.0.0x1/notes.git", false, false},
	{"loopback, octal", "https://0177.0.0.1/notes.git", false, false},
	{"loopback, octal", "https://017700000001/notes.git", false, false},
	{"loopback, short", "https://127.1/notes.git", false, false},
	{"loopback, short", "https://0/notes.git", false, false},
	{"loopback, padded", "https://127.0.0.01/notes.git", false, false},
	{"loopback, dot at the end", "https://127.0.0.1./notes.git", false, false},
	{"loopback, mixed name", "https://evil.0x1/notes.git", false, false},
	{"loopback, full-width digits", "https://１２７.0.0.1/notes.git", false, false},
	{"loopback, other dots", "https://127。0。0。1/notes.git", false, false},
	{"loopback, escaped", "https://%31%32%37.0.0.1/notes.git", false, false},
	{"loopback by name", "https://localhost/notes.git", false, true},
	{"loopback by name", "https://LOCALHOST./notes.git", false, true},
	{"loopback by name", "https://a.localhost/notes.git", false, true},
	{"unspecified", "https://0.0.0.0/notes.git", false, true},
	{"unspecified", "https://[::]/notes.git", false, true},
	{"private", "https://10.0.0.1/notes.git", false, true},
	{"private", "https://192.168.0.1/notes.git", false, true},
	{"private", "https://[fd00::1]/notes.git", false, true},
	{"link-local", "https://[fe80::1]/notes.git", false, true},
	{"carrier-grade NAT", "https://100.64.0.1/notes.git", false, true},
	{"metadata", "https://169.254.169.254/latest/meta-data", false, true},
	{"metadata, decimal", "https://2852039166/latest/meta-data", false, false},
	{"metadata, mapped", "https://[::ffff:169.254.169.254]/latest", false, true},
	{"metadata by name", "https://metadata.google.internal/computeMetadata/v1", false, true},
	{"multicast", "https://224.0.0.1/notes.git", false, true},
	{"a local name", "https://gitlab/notes.git", false, true},
	{"a local name", "https://nas.local/notes.git", false, true},
	{"a local name", "https://git.corp/notes.git", false, true},
	{"a local name", "https://router.home.arpa/notes.git", false, true},

	{"another port", "https://github.com:22/octo/notes.git", false, true},
	{"another port", "https://github.com:6379/octo/notes.git", false, true},
	{"port 0", "https://github.com:0/octo/notes.git", false, false},
	{"an empty port", "https://github.com:/octo/notes.git", false, false},
	{"a port that is none", "https://github.com:65536/octo/notes.git", false, false},
	{"a port that is none", "https://github.com:443x/octo/notes.git", false, false},

	{"a new line (a header, a line for a credential helper)", "https://github.com/octo/notes.git\nhost=evil.example", false, false},
	{"a new line, escaped", "https://github.com/octo%0ahost=evil.example/notes.git", false, false},
	{"CR LF, escaped", "https://github.com/octo%0d%0aHost:%20evil/notes.git", false, false},
	{"CR", "https://github.com/octo\r/notes.git", false, false},
	{"NUL", "https://github.com/octo\x00/notes.git", false, false},
	{"NUL, escaped", "https://github.com/octo%00/notes.git", false, false},
	{"NUL in the host", "https://github.com%00.evil.example/notes.git", false, false},
	{"a new line in the host", "https://github.com%0a.evil.example/notes.git", false, false},
	{"a tab", "https://git\thub.com/octo/notes.git", false, false},
	{"an escape sequence", "https://github.com/\x1b[2J/notes.git", false, false},
	{"a blank", "https://github.com/octo/my notes.git", false, false},
	{"a blank in front", " https://github.com/octo/notes.git", false, false},
	{"not UTF-8", "https://github.com/octo/\xff.git", false, false},
	{"not UTF-8, escaped", "https://github.com/octo/%ff.git", false, false},
	{"a homograph", "https://gіthub.com/octo/notes.git", false, false},
	{"a text direction", "https://github.com/octo/\u202egit.seton", false, false},
	{"a path that goes up", "https://github.com/octo/../other/notes.git", false, false},
	{"a path that goes up, escaped", "https://github.com/octo/%2e%2e/other/notes.git", false, false},
	{"a backslash, escaped", "https://github.com/octo/..%5cnotes.git", false, false},
	{"a broken escape", "https://github.com/octo/%zz.git", false, false},
	{"no host", "https:///octo/notes.git", false, false},
	{"no host", "https:octo/notes.git", false, false},
	{"no repository", "https://github.com", false, false},
	{"no repository", "https://github.com/", false, false},
	{"an empty label", "https://github..com/octo/notes.git", false, false},
	{"a label with a dash in front", "https://-oProxyCommand.example/octo/notes.git", false, false},
	{"a wildcard", "https://*.example/octo/notes.git", false, false},
	{"a host too long", "https://" + strings.Repeat("a.", 130) + "example/x", false, false},
	{"a URL too long", "https://github.com/" + strings.Repeat("a", 3000), false, false},
	{"nothing", "", false, false},
	{"a blank alone", " ", false, false},
	{"a broken address", "https://[::1/notes.git", false, false},
	{"a broken address", "https://[g::1]/notes.git", false, false},
}

func TestCheckURL(t *testing.T) {
	for _, c := range urls {
		for trusted, want := range map[bool]bool{false: c.user, true: c.operator} {
			err := transport.CheckURL(c.url, trusted)
			if (err == nil) != want {
				t.Errorf("%s: %q, trusted %t: got %v, want allowed %t", c.attack, c.url, trusted, err, want)
			}
			if err == nil {
				continue
			}
			if fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%q: the code is %s", c.url, fault.CodeOf(err))
			}
			if p := fault.PublicOf(err); strings.ContainsAny(p, "\r\n\x00\x1b") || strings.Contains(p, "token") && strings.Contains(c.url, "token@") && strings.Contains(p, "me:") {
				t.Errorf("%q: the text is %q", c.url, p)
			}
		}
	}
}

func TestSSHIsAKnob(t *testing.T) {
	c := transport.New(transport.Options{})
	for url, want := range map[string]bool{
		"ssh://git@github.com/octo/notes.git":            true,
		"ssh://git@github.com:22/octo/notes.git":         true,
		"ssh://github.com/octo/notes.git":                true,
		"ssh://git@github.com:2222/octo/notes.git":       false,
		"ssh://git:password@github.com/octo/notes.git":   false,
		"ssh://-oProxyCommand=x@github.com/octo/notes":   false,
		"ssh://-oProxyCommand=x/octo/notes":              false,
		"ssh://git@-oProxyCommand=x/octo/notes":          false,
		"ssh://git@127.0.0.1/octo/notes":                 false,
		"ssh://git@github.com/--upload-pack=x/notes.git": false,
		"ssh://g%20it@github.com/octo/notes.git":         false,
		"ssh://git@github.com/octo/`touch x`":            false,
		"git@github.com:octo/notes.git":                  false,
	} {
		if err := c.Check(transport.Endpoint{URL: url, SSH: &transport.SSH{}}); (err == nil) != want {
			t.Errorf("%q: got %v, want allowed %t", url, err, want)
		}
		if c.Check(transport.Endpoint{URL: url}) == nil {
			t.Errorf("%q is allowed without the knob", url)
		}
	}
}

func TestTheOperatorsExceptionsCountInURLs(t *testing.T) {
	p := proxy(t, egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, Ports: []uint16{443, 8443}})
	c := transport.New(transport.Options{Egress: p})
	for url, want := range map[string]bool{
		"https://10.1.2.3/notes.git":        true,
		"https://10.1.2.3:8443/notes.git":   true,
		"https://10.2.2.3/notes.git":        false,
		"https://github.com:8443/notes.git": true,
		"https://github.com:9443/notes.git": false,
		"http://10.1.2.3/notes.git":         false,
		"https://localhost/notes.git":       false,
	} {
		if err := c.CheckURL(url, false); (err == nil) != want {
			t.Errorf("%q: got %v, want allowed %t", url, err, want)
		}
	}
}

var branches = []string{"main", "a/b", "feature/x.y", "ünï", "a@b", "@", "HEAD", "-x", "--force", "+main", "", "a..b", "a b", "a~1", "a^", "a:b",
	"refs/heads/main", ".a", "a/.b", "a.lock", "a.lock/b", "a/", "/a", "a//b", "a.", "a@{1}", "a\\b", "a*", "a?", "a[b", "a\nb", "a\x00b", "a\x7fb", "a\xffb",
	"main:refs/heads/other", strings.Repeat("a", 300), "a'b", "$(x)", "a;b"}

func TestCheckBranchIsAsStrictAsGit(t *testing.T) {
	for _, b := range branches {
		mine := transport.CheckBranch(b) == nil
		if strings.Contains(b, "\x00") {
			if mine {
				t.Errorf("%q is allowed", b)
			}
			continue
		}
		err := testenv.Git(t, "", "check-ref-format", "--branch", b).Run()
		if mine && err != nil {
			t.Errorf("%q is allowed, and git refuses it", b)
		}
		// CheckBranch is stricter than git for names that could be misread, are too long, or
		// are not UTF-8.
		strict := strings.HasPrefix(b, "refs/") || len(b) > 200 || strings.Contains(b, "\xff") || b == "@" || b == "HEAD"
		if !mine && err == nil && !strict {
			t.Errorf("%q is refused, and git allows it", b)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, c := range urls {
		f.Add(c.url)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if transport.CheckURL(raw, false) != nil {
			return
		}
		// A user may only set an https URL of a host on the internet that all programs read in
		// the same way.
		low := strings.ToLower(raw)
		if !strings.HasPrefix(low, "https://") || strings.ContainsAny(raw, "\\?# \t\r\n\x00") {
			t.Errorf("%q is allowed", raw)
		}
		host, _, _ := strings.Cut(low[len("https://"):], "/")
		if strings.Contains(host, "@") || host == "" || strings.HasPrefix(host, "-") {
			t.Errorf("%q is allowed, of the host %q", raw, host)
		}
		if transport.CheckURL(raw, true) != nil {
			t.Errorf("%q is allowed to users and not to the operator", raw)
		}
	})
}

func FuzzCheckBranch(f *testing.F) {
	for _, b := range branches {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b string) {
		if transport.CheckBranch(b) != nil {
			return
		}
		if strings.HasPrefix(b, "-") || strings.ContainsAny(b, "\x00\n\r :~^?*[\\\x7f") || strings.Contains(b, "..") || strings.HasPrefix(b, "/") || strings.HasSuffix(b, "/") {
			t.Errorf("%q is allowed", b)
		}
	})
}
