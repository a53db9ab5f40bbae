package rootfs

import (
	"net/url"
	"strings"

	"satchel/internal/fault"
)

// leastSecret is the length in bytes from which a password is looked for also
// where it stands alone: a shorter one would make nonsense of ordinary words.
const leastSecret = 4

// hider returns what takes the names and passwords of archives out of a text:
// programs print the URLs that they fetch.
func hider(uris ...string) func(string) string {
	var pairs []string
	for _, uri := range uris {
		u, err := url.Parse(uri)
		if err != nil || u.User == nil {
			continue
		}
		decoded, _ := u.User.Password()
		raw, _, _ := strings.Cut(uri[strings.Index(uri, "://")+3:], "/")
		raw = raw[:max(strings.LastIndexByte(raw, '@'), 0)]
		_, raw, _ = strings.Cut(raw, ":")
		for _, secret := range []string{decoded, raw} {
			if len(secret) >= leastSecret {
				pairs = append(pairs, secret, "***")
			}
		}
	}
	known := strings.NewReplacer(pairs...)
	return func(text string) string { return known.Replace(withoutUsers(text)) }
}

// withoutUsers takes "user:password@" out of every URL in a text.
func withoutUsers(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "://")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("://")
		end := strings.IndexAny(rest, "/ \t\"'<>")
		if end < 0 {
			end = len(rest)
		}
		text = rest[strings.LastIndexByte(rest[:end], '@')+1:]
	}
}

// lowerScheme writes the scheme of a URL as the programs want it.
func lowerScheme(uri string) string {
	scheme, rest, found := strings.Cut(uri, "://")
	if !found {
		return uri
	}
	return strings.ToLower(scheme) + "://" + rest
}

// netrc is the line of a .netrc that holds an archive's name and password, empty
// where it has none: on a command line everyone could read them. What the format
// cannot hold is fault.Invalid.
func netrc(uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil || u.User == nil {
		return "", err
	}
	name := u.User.Username()
	password, given := u.User.Password()
	for _, b := range []byte(name + password) {
		if b <= ' ' || b == 0x7f || strings.IndexByte("\"'\\#", b) >= 0 {
			return "", fault.New(fault.Invalid, "The mirror's user or password has a blank or a quote in it (or a # or a backslash), which no file of passwords can hold.")
		}
	}
	line := "machine " + u.Hostname() + "\nlogin " + name + "\n"
	if given {
		line += "password " + password + "\n"
	}
	return line, nil
}
