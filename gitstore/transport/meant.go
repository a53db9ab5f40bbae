package transport

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"satchel/gitstore/commits"
)

// People paste other texts instead of a repository's URL: the address of one of its pages, a
// URL with a token, the SSH form, or a part of an address. None of these is allowed, not even
// for the operator. The error says what to enter instead.

// untrusted is the error for a URL that is only allowed if the operator trusts it.
type untrusted struct{ error }

func (e *untrusted) Unwrap() error { return e.error }

// NeedsTrust reports whether an error of CheckURL or Check is about a URL that would be
// allowed if the operator trusted it (Endpoint.Trusted).
func NeedsTrust(err error) bool {
	var e *untrusted
	return errors.As(err, &e)
}

// sshKnob says how to enable SSH.
const sshKnob = "The people who run the server can allow SSH with remotes.ssh_key in its configuration."

// hasCredential reports whether a URL has a user name or a password, which would end up in
// configuration and logs. It searches the text, because a URL that cannot be parsed may
// have one too.
func hasCredential(raw string) bool {
	scheme, rest, ok := strings.Cut(raw, "://")
	authority, _, _ := strings.Cut(rest, "/")
	user, host, has := strings.Cut(authority, "@")
	return ok && has && (!strings.EqualFold(scheme, "ssh") || strings.Contains(user, ":") || strings.Contains(host, "@"))
}

func errCredential() error {
	return invalid("The URL has a user name or a token in it, before the “@”. Leave that part out, and give the token separately: it is then stored encrypted. Others may have seen a token that was in a URL, so create a new one.")
}

// scpForm matches what hosting services show for cloning by SSH.
var scpForm = expression(`^(?:([A-Za-z0-9._-]+)@)?([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+):/*([A-Za-z0-9._/-]+)$`)

// checkSCP returns an error for a text in the SSH form. The error names the URL to use instead.
func (p policy) checkSCP(raw string) error {
	m := scpForm().FindStringSubmatch(raw)
	if m == nil || m[1] == "" && number().MatchString(strings.Split(m[3], "/")[0]) { // m[3] begins with a port
		return nil
	}
	user, host, path := m[1], m[2], m[3]
	text := fmt.Sprintf("That is an address for SSH. Use https://%s/%s with a token", host, path)
	if !p.ssh {
		return invalid("%s. %s", text, sshKnob)
	}
	if user != "git" {
		return invalid("%s.", text) // the user name may be a secret
	}
	return invalid("%s; or, which only the people who run this server can do, ssh://git@%s/%s with --trusted.", text, host, path)
}

// ownerAndName matches github.com's name of a repository.
var ownerAndName = expression(`^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}$`)

// hostAndPath matches a URL without its scheme.
var hostAndPath = expression(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(/[A-Za-z0-9._-]+){2,}/?$`)

// meant guesses the URL that a text without a scheme means, and returns a question with this URL
// for the end of a message. It returns "" if there is no guess, or if the guess is not allowed.
func (p policy) meant(text string) string {
	guess := ""
	switch {
	case hostAndPath().MatchString(text):
		guess = "https://" + text
	case !p.trusted && ownerAndName().MatchString(text): // for the operator it may be a directory
		guess = "https://github.com/" + text
	}
	p.trusted = false
	if guess == "" || len(guess) > 200 {
		return ""
	}
	if _, err := p.judge(guess); err != nil {
		return ""
	}
	return " Did you mean " + guess + "?"
}

// twoParts returns the hosts at which every repository has the path OWNER/NAME; a longer
// path is a page.
func twoParts() []string { return []string{"github.com", "codeberg.org", "gitea.com", "bitbucket.org"} }

// checkPage returns an error for the address of a page of a repository, which people copy
// from a browser. The error names the repository's own URL.
func checkPage(u *url.URL) error {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	host = strings.TrimPrefix(host, "www.")
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	own := 0 // how many parts name the repository
	switch at := slices.Index(parts, "-"); {
	case u.Scheme == "ssh" || parts[0] == "" || u.Port() != "" && u.Port() != "443":
		return nil
	case slices.Contains(twoParts(), host), host == "gitlab.com" && len(parts) < 2:
		if len(parts) < 2 {
			return invalid("That URL does not name a repository. At %s one has the form https://%s/OWNER/NAME.", host, host)
		}
		if len(parts) > 2 {
			own = 2
		}
	case strings.HasSuffix(parts[len(parts)-1], ".git"):
		return nil
	case at >= 2 && len(parts) > at+1: // GitLab, at any host
		own = at
	case len(parts) >= 5 && parts[2] == "src" && slices.Contains([]string{"branch", "tag", "commit"}, parts[3]): // Gitea and Forgejo, at any host
		own = 2
	}
	if own == 0 {
		return nil
	}
	u = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/" + strings.Join(parts[:own], "/")}
	return invalid("That is a page of a repository. Use the repository's own URL: %s.", commits.Cut(cleanLine(u.String()), 300))
}
