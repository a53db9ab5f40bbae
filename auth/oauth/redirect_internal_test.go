package oauth

import (
	"net/url"
	"strings"
	"testing"

	"satchel/internal/fault"
)

func TestRedirectRule(t *testing.T) {
	for _, tt := range []struct {
		name, uri string
		ok        bool
	}{
		{"https", "https://claude.ai/api/mcp/auth_callback", true},
		{"https with a port and a query", "https://app.example:8443/cb?tenant=1", true},
		{"https to an address", "https://192.0.2.7/cb", true},
		{"https to an IPv6 address", "https://[2001:db8::1]/cb", true},
		{"https to localhost", "https://localhost:3000/cb", true},
		{"a name in punycode", "https://xn--bcher-kva.example/cb", true},
		{"localhost", "http://localhost:8787/callback", true},
		{"127.0.0.1", "http://127.0.0.1:33418/", true},
		{"[::1]", "http://[::1]:1/cb", true},
		{"loopback without a port", "http://localhost/callback", true},
		{"an application's scheme", "cursor://anysphere.cursor-mcp/oauth/callback", true},
		{"a reversed domain", "com.example.app:/cb", true},
		{"a reversed domain with an empty authority", "com.example.app:///cb", true},
		{"vscode", "vscode://vscode.github-authentication/did-authenticate", true},

		{"empty", "", false},
		{"too long", "https://a.example/" + strings.Repeat("a", maxURL), false},
		{"relative", "/cb", false},
		{"no scheme", "//a.example/cb", false},
		{"https without slashes, which a browser adds", "https:a.example/cb", false},
		{"https with one slash", "https:/a.example/cb", false},
		{"https with three slashes", "https:///a.example/cb", false},
		{"Attack: javascript", "javascript:alert(1)", false},
		{"Attack: javascript as a path", "javascript:/alert(1)", false},
		{"Attack: javascript with an authority and a line end", "javascript://a/%0aalert(1)", false},
		{"Attack: JavaScript in mixed case", "JaVaScRiPt://a/", false},
		{"Attack: javascript with a tab, which a browser drops", "java\tscript:/alert(1)", false},
		{"Attack: data", "data:text/html,<script>", false},
		{"Attack: data with slashes", "data://text/html", false},
		{"Attack: file", "file:///etc/passwd", false},
		{"Attack: vbscript", "vbscript:/x", false},
		{"Attack: blob", "blob:https://a.example/1", false},
		{"Attack: about", "about:/blank", false},
		{"Attack: view-source", "view-source://a.example/", false},
		{"Attack: filesystem", "filesystem:/x", false},
		{"Attack: ws", "ws://localhost/cb", false},
		{"Attack: wss", "wss://a.example/cb", false},
		{"Attack: ftp", "ftp://a.example/cb", false},
		{"Attack: http-like", "httpx://a.example/cb", false},
		{"Attack: a browser's page", "chrome://settings/", false},
		{"Attack: an extension's page", "chrome-extension://abc/x", false},
		{"Attack: another browser", "googlechrome://a.example/cb", false},
		{"Attack: a handler of the system", "ms-msdt:/id", false},
		{"Attack: search-ms", "search-ms:/query=x", false},
		{"Attack: intent", "intent://a.example/#Intent;end", false},
		{"Attack: a site's protocol handler", "web+mcp://cb", false},
		{"Attack: mail", "mailto:/a@b.example", false},
		{"an opaque scheme", "com.example.app:cb", false},
		{"http", "http://a.example/cb", false},
		{"Attack: http to a name that begins like localhost", "http://localhost.evil.example/cb", false},
		{"Attack: http to a name that ends like localhost", "http://evil-localhost/cb", false},
		{"Attack: http to a sub-name of localhost", "http://evil.localhost/cb", false},
		{"Attack: http to localhost with a dot", "http://localhost./cb", false},
		{"Attack: http to 127.0.0.1 as a prefix", "http://127.0.0.1.evil.example/cb", false},
		{"Attack: http to 127.0.0.1 in hexadecimal", "http://0x7f.1/cb", false},
		{"Attack: http to 127.0.0.1 as a number", "http://2130706433/cb", false},
		{"Attack: http to 127.1", "http://127.1/cb", false},
		{"Attack: http to 127.0.0.2, which others may have", "http://127.0.0.2/cb", false},
		{"Attack: http to 0.0.0.0", "http://0.0.0.0/cb", false},
		{"Attack: http to a mapped address", "http://[::ffff:127.0.0.1]/cb", false},
		{"Attack: http to an address with a zone", "http://[::1%25eth0]/cb", false},
		{"Attack: localhost as a user", "http://localhost@evil.example/cb", false},
		{"Attack: a user", "https://claude.ai@evil.example/cb", false},
		{"Attack: a user and a password", "https://a:b@evil.example/cb", false},
		{"Attack: an empty user", "https://@evil.example/cb", false},
		{"Attack: a user behind a scheme", "cursor://a@b/cb", false},
		{"Attack: a backslash, which a browser takes for a slash", `https://evil.example\@claude.ai/cb`, false},
		{"Attack: a backslash in the path", `https://claude.ai/\evil.example`, false},
		{"Attack: a fragment", "https://claude.ai/cb#x", false},
		{"Attack: an empty fragment", "https://claude.ai/cb#", false},
		{"Attack: a fragment in the authority", "https://claude.ai#.evil.example/cb", false},
		{"Attack: a space", "https://claude.ai/cb x", false},
		{"Attack: a line end", "https://claude.ai/cb\r\nSet-Cookie: a=b", false},
		{"Attack: an escape that is none", "https://claude.ai/%zz", false},
		{"Attack: an escape at the end", "https://claude.ai/%2", false},
		{"Attack: an escape in the host", "https://claude%2eai/cb", false},
		{"Attack: a name in another script", "https://сlaude.ai/cb", false},
		{"Attack: quotes", `https://claude.ai/"onload="`, false},
		{"Attack: an address in hexadecimal", "https://0xc0000207/cb", false},
		{"Attack: an address as a number", "https://3221226007/cb", false},
		{"Attack: an address in octal", "https://0300.0.2.7/cb", false},
		{"Attack: an IPv6 address in another form", "https://[2001:DB8:0::1]/cb", false},
		{"an open bracket", "https://[::1/cb", false},
		{"text behind a bracket", "https://[::1]x/cb", false},
		{"an empty port", "https://a.example:/cb", false},
		{"port 0", "https://a.example:0/cb", false},
		{"port 65536", "https://a.example:65536/cb", false},
		{"a port with a zero", "https://a.example:0443/cb", false},
		{"two ports", "https://a.example:1:2/cb", false},
		{"a dot at the end", "https://a.example./cb", false},
		{"an empty label", "https://a..example/cb", false},
		{"a hyphen at the end", "https://a-.example/cb", false},
		{"a scheme that is too long", strings.Repeat("a", maxScheme+1) + ":/cb", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := checkRedirect(tt.uri); (err == nil) != tt.ok {
				t.Errorf("%q: %v", tt.uri, err)
			}
		})
	}
}

func TestRedirectOfAnAdminsClientFollowsTheRule(t *testing.T) {
	if err := CheckRedirectURI("http://localhost/cb"); err != nil {
		t.Error(err)
	}
	if err := CheckRedirectURI("javascript:alert(1)"); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("got %v", err)
	}
}

func TestRedirectIsTheRegisteredOne(t *testing.T) {
	for _, tt := range []struct {
		name, registered, asked string
		same                    bool
	}{
		{"the same bytes", "https://a.example/cb", "https://a.example/cb", true},
		{"another port of localhost", "http://localhost:1/cb", "http://localhost:65535/cb", true},
		{"a port where none is registered", "http://127.0.0.1/callback", "http://127.0.0.1:3118/callback", true},
		{"none where a port is registered", "http://[::1]:9/cb?a=1", "http://[::1]/cb?a=1", true},
		{"an application's scheme", "cursor://x/cb", "cursor://x/cb", true},

		{"localhost is not 127.0.0.1", "http://localhost/cb", "http://127.0.0.1/cb", false},
		{"127.0.0.1 is not localhost", "http://127.0.0.1/cb", "http://localhost/cb", false},
		{"127.0.0.1 is not [::1]", "http://127.0.0.1/cb", "http://[::1]/cb", false},
		{"another path of localhost", "http://localhost/cb", "http://localhost:1/cb2", false},
		{"a slash at the end of localhost's", "http://localhost/cb", "http://localhost:1/cb/", false},
		{"another query of localhost", "http://localhost/cb", "http://localhost:1/cb?x=1", false},
		{"https for http", "http://localhost/cb", "https://localhost/cb", false},
		{"another port of https", "https://a.example/cb", "https://a.example:8443/cb", false},
		{"the port of https written out", "https://a.example/cb", "https://a.example:443/cb", false},
		{"another port of https on localhost", "https://localhost:1/cb", "https://localhost:2/cb", false},
		{"another case", "https://a.example/cb", "https://A.example/cb", false},
		{"a slash at the end", "https://a.example/cb", "https://a.example/cb/", false},
		{"an escape for a letter", "https://a.example/cb", "https://a.example/%63b", false},
		{"dots", "https://a.example/cb", "https://a.example/x/../cb", false},
		{"a query", "https://a.example/cb", "https://a.example/cb?x", false},
		{"Attack: a prefix of the host", "https://a.example/cb", "https://a.example.evil.example/cb", false},
		{"Attack: a suffix of the host", "https://a.example/cb", "https://evil-a.example/cb", false},
		{"Attack: a user", "https://a.example/cb", "https://a.example@evil.example/cb", false},
		{"Attack: what was registered under laxer rules", "javascript:alert(1)", "javascript:alert(1)", false},
		{"Attack: a scheme in another case", "http://localhost/cb", "HTTP://localhost:1/cb", false},
		{"empty", "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := sameRedirect(tt.registered, tt.asked); got != tt.same {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestRedirectKeepsItsQuery(t *testing.T) {
	for _, tt := range []struct{ target, want string }{
		{"https://a.example/cb", "https://a.example/cb?code=a%2Bb%20%26c"},
		{"https://a.example", "https://a.example?code=a%2Bb%20%26c"},
		{"https://a.example/cb?", "https://a.example/cb?code=a%2Bb%20%26c"},
		{"https://a.example/cb?x=%41&y", "https://a.example/cb?x=%41&y&code=a%2Bb%20%26c"},
		{"https://a.example/cb?x=1&", "https://a.example/cb?x=1&code=a%2Bb%20%26c"},
		{"com.example.app:/cb", "com.example.app:/cb?code=a%2Bb%20%26c"},
	} {
		if got := withQuery(tt.target, "empty", "", "code", "a+b &c"); got != tt.want {
			t.Errorf("%s: got %s", tt.target, got)
		}
	}
}

// FuzzRedirectURI compares checkRedirect with net/url.
func FuzzRedirectURI(f *testing.F) {
	for _, s := range [][2]string{
		{"https://a.example/cb?x=1", "https://a.example/cb?x=1"}, {"http://localhost:1/cb", "http://localhost/cb"}, {"cursor://a/b", "cursor://a/b"},
		{"http://[::1]:1/", "http://[::1]/"}, {"javascript:alert(1)", "com.example:/cb"}, {"https://a@b/", `https://a\b/`}, {"https://a.example:1/?#", "//"},
	} {
		f.Add(s[0], s[1], "state +&=\x00")
	}
	f.Fuzz(func(t *testing.T, registered, asked, state string) {
		if _, err := checkRedirect(asked); err == nil {
			u, err := url.Parse(asked)
			if err != nil {
				t.Fatalf("took %q, which is no URL: %v", asked, err)
			}
			switch {
			case u.User != nil || u.Fragment != "" || u.Opaque != "" || strings.ContainsAny(asked, "\\#\t\r\n "):
				t.Fatalf("took %q", asked)
			case u.Scheme == "http" && u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1" && u.Hostname() != "::1":
				t.Fatalf("took http to %q", asked)
			case u.Scheme == "https" && u.Host == "":
				t.Fatalf("took https to nobody: %q", asked)
			case refusedScheme(u.Scheme) != "" && u.Scheme != "https" && u.Scheme != "http":
				t.Fatalf("took the scheme of %q", asked)
			}
			to := withQuery(asked, "state", state)
			v, err := url.Parse(to)
			if err != nil || v.Scheme != u.Scheme || v.Host != u.Host || v.EscapedPath() != u.EscapedPath() || v.Fragment != "" {
				t.Fatalf("%q leads to %q", asked, to)
			}
			if state != "" {
				last := v.RawQuery[strings.LastIndex(v.RawQuery, "state="):]
				if got, err := url.ParseQuery(last); err != nil || got.Get("state") != state {
					t.Fatalf("the state %q came back as %q", state, last)
				}
			}
		}
		if sameRedirect(registered, asked) {
			r, _ := url.Parse(registered)
			a, _ := url.Parse(asked)
			if r.Scheme != a.Scheme || r.Hostname() != a.Hostname() || r.EscapedPath() != a.EscapedPath() || r.RawQuery != a.RawQuery || r.Scheme != "http" && registered != asked {
				t.Fatalf("%q was taken for %q", asked, registered)
			}
		}
	})
}
