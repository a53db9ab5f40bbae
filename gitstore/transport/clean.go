package transport

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"satchel/gitstore/commits"
)

// Limits of the quoted text of a remote.
const (
	maxSaid      = 300 // bytes of a line
	maxSaidLines = 20
	maxCause     = 4 << 10
)

// scrubber removes secrets and paths of this machine from text. It must see the text before the
// text is cut. Otherwise most of a secret at the cut would stay.
type scrubber struct {
	secrets []string       // lower-case
	secret  *regexp.Regexp // matches any of secrets, in any case; nil if there are none
	replace *strings.Replacer
}

// scrubber returns the scrubber of one call. It knows everything that must not appear in an
// error: the credential in each of its forms, the proxy's credential, and our own paths.
func (c *Client) scrubber(e Endpoint, p place, gitDir string) scrubber {
	var out scrubber
	var pairs, forms []string
	add := func(text, with string) {
		if text != "" {
			pairs = append(pairs, text, with)
		}
	}
	hide := func(text string) {
		if text != "" {
			out.secrets = append(out.secrets, strings.ToLower(text))
			forms = append(forms, regexp.QuoteMeta(text))
		}
	}
	secret := func(user, s string) {
		if s == "" {
			return
		}
		both := user + ":" + s
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
			hide(enc.EncodeToString([]byte(both)))
			hide(enc.EncodeToString([]byte(s)))
		}
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s), url.UserPassword("", s).String()[1:], hex.EncodeToString([]byte(s))} {
			hide(form)
		}
	}
	secret(cmp.Or(e.Credential.Username, defaultUser), e.Credential.Secret)
	if c.o.Egress != nil {
		u := c.o.Egress.URL().User
		password, _ := u.Password()
		secret(u.Username(), password)
	}
	if p.protocol == "file" {
		add(p.url, "<remote>")
	}
	add(gitDir, "<repository>")
	add(e.CAFile, "<file>")
	if e.SSH != nil {
		add(e.SSH.KeyFile, "<file>")
		add(e.SSH.KnownHosts, "<file>")
	}
	if len(forms) > 0 {
		out.secret = regexp.MustCompile("(?i:" + strings.Join(forms, "|") + ")")
	}
	out.replace = strings.NewReplacer(pairs...)
	return out
}

// expression returns a function that compiles an expression on its first call, because
// most runs of the program use no remote.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// hostPath matches an absolute path as in git's messages, but not the path of a URL.
var hostPath = expression(`(^|[\s'"(=])(/[^\s'"():;,/]+){2,}/?|(^|[\s'"(=])[A-Za-z]:\\[^\s'"]+`)

// text cleans a text of any number of lines. It removes invisible characters, which could
// split a secret.
func (s scrubber) text(t string) string {
	t = visible(t)
	if s.secret != nil {
		t = s.secret.ReplaceAllString(t, hidden)
	}
	if s.replace != nil {
		t = s.replace.Replace(t)
	}
	return t
}

// cutOff cleans a text that was cut off when it was read: its end may be the
// beginning of a secret.
func (s scrubber) cutOff(t string) string {
	t = s.text(t)
	low := strings.ToLower(t)
	if len(low) != len(t) {
		return t[:strings.LastIndexByte(t, '\n')+1] // positions in low do not fit t, so drop the whole last line
	}
	most := 0
	for _, secret := range s.secrets {
		for n := min(len(secret), len(low)); n > most; n-- {
			if strings.HasSuffix(low, secret[:n]) {
				most = n
			}
		}
	}
	return t[:len(t)-most]
}

// hidden replaces a secret.
const hidden = "***"

// visible removes invisible characters: control and format characters except line ends and
// tabs.
func visible(t string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return r
		case r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(t, "\uFFFD"))
}

// error returns an error with the same text, cleaned and on one line. It drops the wrapped
// errors, which could still contain a secret.
func (s scrubber) error(err error) error {
	var lines []string
	for line := range strings.Lines(s.text(err.Error())) {
		line = cleanLine(line)
		if !strings.HasPrefix(line, "remote: ") {
			line = hostPath().ReplaceAllString(line, "$1$3<path>")
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return errors.New(commits.Cut(strings.Join(lines, "; "), maxCause))
}

// cleanLine returns a remote's text on one line, without control characters and repeated
// spaces.
func cleanLine(s string) string { return strings.Join(strings.Fields(visible(s)), " ") }
