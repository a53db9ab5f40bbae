package transport_test

import (
	"strings"
	"testing"

	"satchel/gitstore/transport"
	"satchel/internal/fault"
)

// These texts are what people paste instead of a repository's URL, with the errors that they
// get.
func TestWhatWasMeant(t *testing.T) {
	none := transport.New(transport.Options{})
	for _, c := range []struct{ url, says string }{
		{"github.com/ann/notes", "Did you mean https://github.com/ann/notes?"},
		{"git.example.org/group/sub/notes.git", "Did you mean https://git.example.org/group/sub/notes.git?"},
		{"ann/notes", "Did you mean https://github.com/ann/notes?"},
		{"git@github.com:ann/notes.git", "Use https://github.com/ann/notes.git with a token."},
		{"git@github.com:ann/notes.git", "remotes.ssh_key"},
		{"github.com:ann/notes.git", "Use https://github.com/ann/notes.git with a token."},
		{"ssh://git@github.com/ann/notes.git", "remotes.ssh_key"},
		{"https://github.com/ann/notes/tree/main/docs", "URL: https://github.com/ann/notes."},
		{"https://github.com/ann/notes/blob/main/a.md#L10", "URL: https://github.com/ann/notes."},
		{"https://www.github.com/ann/notes/issues", "URL: https://www.github.com/ann/notes."},
		{"https://gitlab.com/group/sub/notes/-/tree/main?ref_type=heads", "URL: https://gitlab.com/group/sub/notes."},
		{"https://gitlab.example.org/ann/notes/-/blob/main/a.md", "URL: https://gitlab.example.org/ann/notes."},
		{"https://codeberg.org/ann/notes/src/branch/main", "URL: https://codeberg.org/ann/notes."},
		{"https://gitea.example.org/ann/notes/src/branch/main/a.md", "URL: https://gitea.example.org/ann/notes."},
		{"https://bitbucket.org/ann/notes/src/main/", "URL: https://bitbucket.org/ann/notes."},
		{"https://bitbucket.org/ann", "https://bitbucket.org/OWNER/NAME"},
		{"https://gitlab.com/ann", "https://gitlab.com/OWNER/NAME"},
		{"https://ann:CANARY@github.com/ann/notes", "give the token separately"},
	} {
		for _, trusted := range []bool{false, true} {
			err := none.CheckURL(c.url, trusted)
			if c.url == "ann/notes" && trusted {
				continue // for the operator, the text may be a directory
			}
			if err == nil || !strings.Contains(fault.PublicOf(err), c.says) || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%q, trusted %t: says %v, want %q", c.url, trusted, err, c.says)
			}
			if transport.NeedsTrust(err) {
				t.Errorf("%q: trust is said to help", c.url)
			}
		}
	}
}

// There is no guess if it could mislead, repeat a secret, or be a URL that is not allowed
// either.
func TestNoGuess(t *testing.T) {
	c := transport.New(transport.Options{})
	for _, url := range []string{
		"ghp_0123456789", "notes", "/srv/notes", "../ann/notes", "~/notes", "./notes", "C:/notes", "a/b/c", "ann/notes extra", "nas.local/ann/notes",
		"10.0.0.1/ann/notes", "127.1/ann/notes", "token@github.com/ann/notes", "git.example:8443/ann/notes", "github.com/ann", "-x/notes", "ann/..",
	} {
		err := c.CheckURL(url, false)
		if err == nil || strings.Contains(fault.PublicOf(err), "Did you mean") || strings.Contains(fault.PublicOf(err), "Use https") {
			t.Errorf("%q: %v", url, err)
		}
	}
	if err := c.CheckURL("ann/notes", true); err == nil || strings.Contains(fault.PublicOf(err), "github.com") {
		t.Errorf("the operator's own directory: %v", err)
	}
}

// Repositories whose URLs look like pages are not refused as pages.
func TestNoPages(t *testing.T) {
	for _, url := range []string{
		"https://gitlab.com/group/sub/deeper/notes", "https://git.example/a/b/src/branch", "https://git.example/a/b/src/main/x",
		"https://git.example/a/b/src/branch/notes.git", "https://git.example/notes", "https://gist.github.com/ann/0123abcd", "https://git.example/a/-/b.git",
	} {
		if err := transport.CheckURL(url, false); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// A rejected URL says whether the operator could allow it, and never refers to the operator
// for something that the reader can do.
func TestNeedsTrust(t *testing.T) {
	c := transport.New(transport.Options{})
	for url, want := range map[string]bool{
		"https://10.0.0.1/notes":    true,
		"https://nas.local/notes":   true,
		"http://git.example/notes":  true,
		"/srv/notes":                true,
		"https://git.example:8443/": false,
		"https://git.example:22/a":  true,
		"ssh://git@git.example/a":   false,
		"ext::sh":                   false,
		"":                          false,
	} {
		err := c.CheckURL(url, false)
		if transport.NeedsTrust(err) != want || fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v", url, err)
		}
		if strings.Contains(fault.PublicOf(err), "The operator can") {
			t.Errorf("%q: %v", url, err)
		}
	}
	if transport.NeedsTrust(nil) {
		t.Error("nothing is wrong")
	}
}

// With SSH, the error for the form that hosting services show names the URL.
func TestSSHForm(t *testing.T) {
	c := transport.New(transport.Options{})
	for url, want := range map[string]string{
		"git@github.com:ann/notes.git":    "ssh://git@github.com/ann/notes.git with --trusted",
		"CANARY@github.com:ann/notes.git": "Use https://github.com/ann/notes.git with a token.",
	} {
		err := c.Check(transport.Endpoint{URL: url, SSH: &transport.SSH{}})
		if err == nil || !strings.Contains(fault.PublicOf(err), want) || strings.Contains(err.Error(), "ssh_key") || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
