package web

import (
	"net/url"
	"strings"
	"testing"
)

func TestLocalPath(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"a page", "/account", "/account"},
		{"with a query", "/oauth/authorize?a=b&c=%2F%2Fd", "/oauth/authorize?a=b&c=%2F%2Fd"},
		{"an encoded path", "/spaces/a%2Fb", "/spaces/a%2Fb"},
		{"without the fragment", "/account#clients", "/account"},
		{"nothing", "", "/"},
		{"a relative one", "account", "/"},
		{"Attack: another host", "https://evil.test/", "/"},
		{"Attack: a scheme without slashes", "https:evil.test", "/"},
		{"Attack: a script", "javascript:alert(1)", "/"},
		{"Attack: data", "data:text/html,x", "/"},
		{"Attack: a host alone", "//evil.test", "/"},
		{"Attack: three slashes", "///evil.test", "/"},
		{"Attack: a backslash for the second slash", `/\evil.test`, "/"},
		{"Attack: a backslash for both", `\\evil.test`, "/"},
		{"Attack: a backslash further on", `/a\..\\evil.test`, "/"},
		{"Attack: a backslash in the query", `/a?b=\c`, "/"},
		{"Attack: an encoded backslash", "/%5Cevil.test", "/"},
		{"Attack: an encoded slash", "/%2Fevil.test", "/"},
		{"Attack: a tab that browsers drop", "/\t/evil.test", "/"},
		{"Attack: a line end that browsers drop", "/\n/evil.test", "/"},
		{"Attack: a line end that adds a header", "/a\r\nSet-Cookie: a=b", "/"},
		{"Attack: NUL", "/\x00/evil.test", "/"},
		{"Attack: DEL", "/\x7f/evil.test", "/"},
		{"Attack: a space before", " //evil.test", "/"},
		{"Attack: a user", "/@evil.test", "/@evil.test"},
		{"too long", "/" + strings.Repeat("a", maxReturn), "/"},
		{"a bad escape", "/%zz", "/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := LocalPath(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// An address to return to is always a path of this server, even if it is resolved against
// the page.
func FuzzLocalPath(f *testing.F) {
	for _, s := range []string{"/", "//a", `/\a`, "/a?b#c", "/%5c", "/%2f%2f", "/..//a", "/a:b", "/\u2028/a"} {
		f.Add(s)
	}
	base := &url.URL{Scheme: "https", Host: "satchel.test", Path: "/signin"}
	f.Fuzz(func(t *testing.T, s string) {
		got := LocalPath(s)
		u, err := base.Parse(got)
		if err != nil || u.Scheme != "https" || u.Host != "satchel.test" || u.User != nil {
			t.Fatalf("%q becomes %q, which leads to %v", s, got, u)
		}
		if strings.ContainsAny(got, "\\\r\n\t\x00") || strings.HasPrefix(got, "//") || !strings.HasPrefix(got, "/") {
			t.Fatalf("%q becomes %q", s, got)
		}
		if again := LocalPath(got); again != got {
			t.Fatalf("%q becomes %q and then %q", s, got, again)
		}
	})
}

func TestFormSources(t *testing.T) {
	for in, want := range map[string]string{
		"https://client.test/callback":   "https://client.test https:",
		"https://client.test:8443/x?y=z": "https://client.test:8443 https:",
		"http://127.0.0.1:5000/callback": "http://127.0.0.1:5000 https:",
		"http://localhost/callback":      "http://localhost https:",
		"http://[::1]:5000/callback":     "",
		"https://vscode.dev/redirect":    "",
		"cursor://anysphere/callback":    "",
		"https://a;script-src *.test/":   "",
	} {
		u, err := url.Parse(in)
		if err != nil {
			u = &url.URL{Scheme: "https", Host: "a;script-src *.test"}
		}
		if got := FormSources(u); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestMayLeaveFor(t *testing.T) {
	for in, want := range map[string]bool{
		"https://a.test/": true, "http://127.0.0.1:1/": true, "cursor://x/y": true, "com.example.app:/x": true,
		"javascript:alert(1)": false, "JavaScript:alert(1)": false, "data:text/html,x": false, "vbscript:x": false,
		"file:///etc/passwd": false, "blob:https://a.test/x": false, "about:blank": false, "view-source:https://a.test": false, "/relative": false, "https:": false,
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := mayLeaveFor(u); got != want {
			t.Errorf("%s: got %v, want %v", in, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	for in, want := range map[string]string{
		"Claude":                 "Claude",
		"a\u202eb\u2066c\u200bd": "abcd",
		"a\r\n\tb":               "a   b",
		"a\x00b\x1bc\xff":        "abc",
		"  ":                     "",
		strings.Repeat("ä", 12):  strings.Repeat("ä", 10) + "…",
		"<b>":                    "<b>",
	} {
		if got := Shorten(in, 10); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestDeviceOf(t *testing.T) {
	for in, want := range map[string]string{
		"": "A browser",
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                              "Firefox on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140": "Edge on Windows",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 Version/18.0 Mobile/15E148 Safari/604.1":      "Safari on iPhone",
		"Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36":                                "Chrome on Android",
		"curl/8.5": "curl",
	} {
		if got := DeviceOf(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
