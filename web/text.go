package web

import (
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode"

	"satchel/auth"
	"satchel/web/render"
)

// Shorten makes untrusted text safe to show: it removes characters that are invisible or
// change the direction of others, and cuts the text to n characters.
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

// WholePath makes ShownPath show the whole path: no path has as many characters.
const WholePath = 1 << 20

// ShownPath returns a path as pages show it. Invisible characters are written as their numbers, so
// that they cannot make two paths look alike when a person decides about one of the paths. If the
// path has more than n characters, the middle is left out, so that the name stays.
func ShownPath[T ~string](p T, n int) string {
	text := strings.ToValidUTF8(string(p), "\uFFFD")
	var out []string // the text for each character
	for i, c := range text {
		// A space is visible only between two other characters.
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

// count is Grouped for templates, which have both int and int64.
func count(n any) (string, error) {
	switch n := n.(type) {
	case int:
		return Grouped(int64(n)), nil
	case int64:
		return Grouped(n), nil
	}
	return "", fmt.Errorf("%T is not an integer", n)
}

// Grouped formats a number with groups of three digits, such as "12,345".
func Grouped(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", Grouped(n/1000), n%1000)
}

// coded returns a text as HTML, in which `x` becomes code.
func coded(text string) template.HTML {
	var b strings.Builder
	parts := strings.Split(text, "`")
	for i, part := range parts {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 && i < len(parts)-1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String()) //nolint:gosec // escaped above
}

// whole returns a command as HTML in which lines break only between words, but neither before an
// operator nor between an option and a short value. Otherwise a browser also breaks a line after
// each hyphen, so that an option is hard to recognize. A word that is longer than a line breaks
// after a slash.
func whole(command string) template.HTML {
	slashes := strings.NewReplacer("://", "://", "/", "/<wbr>")
	lines := strings.Split(command, "\n")
	for l, line := range lines {
		var out []string
		words := strings.Split(line, " ")
		for i, w := range words {
			together := w == "|" || w == "&&" ||
				i > 0 && strings.HasPrefix(words[i-1], "-") && len(w) <= 20 && (w == "-" || !strings.HasPrefix(w, "-"))
			if at := len(out) - 1; together && at >= 0 {
				out[at] += " " + w
			} else {
				out = append(out, w)
			}
		}
		for i, w := range out {
			out[i] = `<span class="word">` + slashes.Replace(template.HTMLEscapeString(w)) + `</span>`
		}
		lines[l] = strings.Join(out, " ")
	}
	return template.HTML(strings.Join(lines, "\n")) //nolint:gosec // words are escaped above
}

// DeviceOf describes the browser that sends a User-Agent, such as "Firefox on Linux". It
// is only a hint: browsers can send anything.
func DeviceOf(agent string) string {
	browser, system := "A browser", ""
	for _, b := range [...][2]string{
		// Most browsers also claim to be the ones further down.
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

// Span formats a duration for people.
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

// TroubleOf returns l.Trouble(place) for a page. It first makes the names from GitHub safe to
// show.
func TroubleOf(l auth.RepositoryLink, place string) (what, way string) {
	l.Account, l.FullName, l.GitHubLogin = Shorten(l.Account, 80), Shorten(l.FullName, 100), Shorten(l.GitHubLogin, 80)
	return l.Trouble(place)
}

// Plural returns one if n is 1. Otherwise it formats n with many.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(many, n)
}
