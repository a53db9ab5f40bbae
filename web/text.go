package web

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"satchel/auth"
	"satchel/web/render"
)

// Shorten makes text of unknown origin fit to show: without characters that are
// not visible or change the direction of others, at most n characters.
func Shorten(text string, n int) string {
	var b strings.Builder
	count := 0
	for _, c := range strings.ToValidUTF8(text, "") {
		if c != ' ' && !unicode.IsPrint(c) {
			if !unicode.IsSpace(c) {
				continue
			}
			c = ' '
		}
		if count == n {
			b.WriteString("…")
			break
		}
		b.WriteRune(c)
		count++
	}
	return strings.TrimSpace(b.String())
}

// WholePath is that a path is shown whole: no path has as many characters.
const WholePath = 1 << 20

// ShownPath is a path as pages show it: what nobody would see of it is written by
// its number, since two paths must not look alike where a person decides about one
// of them. Of more than n characters the middle is left out, so that the name stays.
func ShownPath[T ~string](p T, n int) string {
	text := strings.ToValidUTF8(string(p), "\uFFFD")
	var out []string // what stands for each character
	for i, c := range text {
		// A space is seen between two other characters alone.
		if c == ' ' && (i == 0 || i == len(text)-1 || strings.ContainsRune(" /", rune(text[i-1])) || strings.ContainsRune(" /", rune(text[i+1]))) {
			out = append(out, "⟨U+0020⟩")
			continue
		}
		if c == '\t' {
			out = append(out, "⟨U+0009⟩")
			continue
		}
		out = append(out, render.Visible(string(c)))
	}
	if len(out) > n {
		head := n / 3
		out = append(append(out[:head:head], "…"), out[len(out)-(n-head):]...)
	}
	return strings.Join(out, "")
}

// count writes a number of things for people, in groups of three digits: "12,345". It is
// of int or int64, as templates have both.
func count(n any) (string, error) {
	switch n := n.(type) {
	case int:
		return grouped(int64(n)), nil
	case int64:
		return grouped(n), nil
	}
	return "", fmt.Errorf("%T is no number of things", n)
}

func grouped(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// DeviceOf is what a person would call the browser that sends such a User-Agent,
// such as "Firefox on Linux". It is a hint alone: browsers say what they like.
func DeviceOf(agent string) string {
	browser, system := "A browser", ""
	for _, b := range [...][2]string{
		// Most browsers claim to be the ones further down too.
		{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"},
		{"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
	} {
		if strings.Contains(agent, b[0]) {
			browser = b[1]
			break
		}
	}
	for _, o := range [...][2]string{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"CrOS", "ChromeOS"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"},
	} {
		if strings.Contains(agent, o[0]) {
			system = " on " + o[1]
			break
		}
	}
	return browser + system
}

// Span writes a duration for people.
func Span(d time.Duration) string {
	for _, unit := range [...]struct {
		d    time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if d >= unit.d && d%unit.d == 0 {
			if d == unit.d {
				return "1 " + unit.name
			}
			return fmt.Sprintf("%d %ss", d/unit.d, unit.name)
		}
	}
	return d.String()
}

// TroubleOf is a connection's Trouble for a page. The names in it are GitHub's, and do
// nothing to the text around them.
func TroubleOf(l auth.RepositoryLink) (what, way string) {
	l.Account, l.FullName, l.GitHubLogin = Shorten(l.Account, 80), Shorten(l.FullName, 100), Shorten(l.GitHubLogin, 80)
	return l.Trouble()
}

// Plural is one for 1, and else many, a format, with the number.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(many, n)
}
