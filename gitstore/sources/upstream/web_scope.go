package upstream

import (
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// scope decides which addresses belong to a source.
type scope struct {
	starts           []*url.URL
	include, exclude []*regexp.Regexp
}

// patterns compiles patterns on the path of an address: * matches within a segment, and **
// matches any number of segments.
func patterns(field string, given []string) ([]*regexp.Regexp, error) {
	if len(given) > maxPatterns {
		return nil, fault.New(fault.Invalid, "A source can have %d patterns at most.", maxPatterns).In(field)
	}
	var all []*regexp.Regexp
	for _, p := range given {
		if !strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "*") || len(p) > 500 {
			return nil, fault.New(fault.Invalid, "The pattern %q must begin with a slash, as in /guide/**.", p).In(field)
		}
		var b strings.Builder
		b.WriteString("^")
		rest, whole := strings.CutSuffix(p, "/**")
		for i := 0; i < len(rest); i++ {
			switch {
			case strings.HasPrefix(rest[i:], "**/"):
				b.WriteString("(.*/)?")
				i += 2
			case strings.HasPrefix(rest[i:], "**"):
				b.WriteString(".*")
				i++
			case rest[i] == '*':
				b.WriteString("[^/]*")
			default:
				b.WriteString(regexp.QuoteMeta(rest[i : i+1]))
			}
		}
		if whole {
			b.WriteString("(/.*)?")
		} else if !strings.HasSuffix(rest, "/") {
			b.WriteString("/?")
		}
		b.WriteString("$")
		re, err := regexp.Compile(b.String())
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "The pattern %q cannot be read.", p).In(field)
		}
		all = append(all, re)
	}
	return all, nil
}

// has reports whether an address belongs to the source: it is below a start address, and the
// patterns allow its path.
func (s scope) has(u *url.URL) bool {
	below := slices.ContainsFunc(s.starts, func(start *url.URL) bool {
		return u.Host == start.Host && (strings.HasPrefix(u.Path, prefixOf(start)) || u.Path+"/" == prefixOf(start) || key(u) == key(start))
	})
	if !below {
		return false
	}
	match := func(re *regexp.Regexp) bool { return re.MatchString(u.Path) }
	return (len(s.include) == 0 || slices.ContainsFunc(s.include, match)) && !slices.ContainsFunc(s.exclude, match)
}

// prefixOf returns the directory of a start address. The last segment is a directory too,
// unless it has the extension of a page.
func prefixOf(start *url.URL) string {
	p := start.Path
	if strings.HasSuffix(p, "/") {
		return p
	}
	if slices.Contains(pageExtensions, strings.ToLower(path.Ext(p))) {
		return p[:strings.LastIndex(p, "/")+1]
	}
	return p + "/"
}

// tidy returns an address in its normal form: without a fragment or a default port, with a path,
// and with the scheme and the host in lower case.
func tidy(u *url.URL) *url.URL {
	t := *u
	t.Fragment, t.RawFragment, t.ForceQuery = "", "", false
	t.Scheme = strings.ToLower(t.Scheme)
	t.Host = strings.ToLower(t.Host)
	if host, port, err := net.SplitHostPort(t.Host); err == nil && (port == "443" && t.Scheme == "https" || port == "80" && t.Scheme == "http") {
		t.Host = host
	}
	if t.Path == "" {
		t.Path = "/"
	}
	return &t
}

// plain returns the normal form of an address without its query. Queries sort, filter and track, so
// they create endless addresses of the same pages.
func plain(u *url.URL) *url.URL {
	t := tidy(u)
	t.RawQuery = ""
	return t
}

// key returns a text that identifies a page. A page has the same key with and without a slash at
// the end, and with the name index.html.
func key(u *url.URL) string {
	p := u.EscapedPath()
	for _, index := range []string{"/index.html", "/index.htm", "/index.md"} {
		p = strings.TrimSuffix(p, index)
	}
	k := u.Host + strings.TrimRight(p, "/")
	if u.RawQuery != "" {
		k += "?" + u.RawQuery
	}
	return k
}

// trap reports whether a path looks like one of endlessly many: it is long, or has the same segment
// more than twice.
func trap(u *url.URL) bool {
	if len(u.Path) > 512 {
		return true
	}
	count := map[string]int{}
	for s := range strings.SplitSeq(strings.Trim(u.Path, "/"), "/") {
		if count[s]++; count[s] > 2 {
			return true
		}
	}
	return false
}

// notPages are extensions of files that are not pages. Links to them are not followed.
var notPages = strings.Fields("7z apk avi avif bmp bz2 css csv deb dmg eot exe gif gz ico iso jar jpeg jpg js json map mjs mov mp3 mp4 mpg msi ogg otf png rar rpm rss svg tar tgz tif tiff ttf wasm wav webm webmanifest webp whl woff woff2 xml xsd xsl xz yaml yml zip zst")

func isPage(u *url.URL) bool {
	return !slices.Contains(notPages, strings.ToLower(strings.TrimPrefix(path.Ext(u.Path), ".")))
}

// pageExtensions are left out of the names of files.
var pageExtensions = strings.Fields(".html .htm .xhtml .shtml .php .asp .aspx .jsp .md .mdx .markdown .txt")

// fileOf returns the path of the file for a page: /guide/install/ becomes guide/install.md.
func fileOf(u *url.URL, extension string) space.Path {
	var names []string
	for s := range strings.SplitSeq(u.Path, "/") {
		if s = safeName(s); s != "" {
			names = append(names, s)
		}
	}
	if len(names) > 0 && !strings.HasSuffix(u.Path, "/") {
		last := &names[len(names)-1]
		if e := path.Ext(*last); slices.Contains(pageExtensions, strings.ToLower(e)) && len(e) < len(*last) {
			*last = strings.TrimSuffix(*last, e)
		}
		if *last == "index" {
			names = names[:len(names)-1]
		}
	}
	if len(names) == 0 {
		names = []string{"index"}
	}
	for i := range names[:len(names)-1] { // a directory must not have the extension of a page
		if e := path.Ext(names[i]); e == ".md" || e == ".txt" {
			names[i] = strings.TrimSuffix(names[i], e) + "-" + e[1:]
		}
	}
	if u.RawQuery != "" {
		names[len(names)-1] += "-" + safeName(u.RawQuery)
	}
	p, err := space.ParsePath(strings.Join(names, "/") + extension)
	if err != nil {
		p = space.Path("page-" + shortHash([]byte(key(u))) + extension) // the path is too long or too deep
	}
	return p
}

// safeName returns s in a form that is a safe file name for all file systems and in links.
func safeName(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("-_.~+@", r) {
			return r
		}
		return '-'
	}, strings.ToValidUTF8(s, "-"))
	s = strings.Trim(s, ".-")
	if len(s) > 100 {
		hash := shortHash([]byte(s))
		s = s[:80]
		for !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
		s += "-" + hash
	}
	return s
}

// relative returns the link from one file to another.
func relative(from, to space.Path) string {
	a, b := strings.Split(string(from), "/"), strings.Split(string(to), "/")
	i := 0
	for i < len(a)-1 && i < len(b)-1 && a[i] == b[i] {
		i++
	}
	out := slices.Repeat([]string{".."}, len(a)-1-i)
	for _, s := range b[i:] {
		out = append(out, url.PathEscape(s))
	}
	return strings.Join(out, "/")
}
