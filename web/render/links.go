package render

import (
	"net/url"
	"path"
	"strings"

	"satchel/internal/space"
)

// target is where a link of a document leads.
type target struct {
	href     string
	external bool
	image    string // the address of the content, where it is a file of the space
	path     string // of the file, in the space
}

// resolve turns the destination of a link into an address of ours. ok is false
// where it leads nowhere that a page may link to: another scheme than http, https
// and mailto, or out of the space.
func (p Place) resolve(dest string) (t target, ok bool) {
	if dest == "" || strings.ContainsFunc(dest, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return target{}, false
	}
	u, err := url.Parse(dest)
	if err != nil {
		return target{}, false
	}
	switch {
	case u.Scheme == "http" || u.Scheme == "https":
		// A name before the host only makes an address look like another's.
		return target{href: u.String(), external: true}, u.Host != "" && u.User == nil && u.Opaque == ""
	case u.Scheme == "mailto":
		return target{href: (&url.URL{Scheme: "mailto", Opaque: u.Opaque, RawQuery: u.RawQuery}).String(), external: true}, strings.Contains(u.Opaque, "@") && !strings.Contains(u.Opaque, ":")
	case u.Scheme != "" || u.Opaque != "":
		return target{}, false
	case u.Host != "" || strings.HasPrefix(dest, "//"):
		return target{}, false
	}
	fragment := ""
	if u.Fragment != "" {
		fragment = (&url.URL{Fragment: u.Fragment}).String()
	}
	if u.Path == "" {
		return target{href: fragment}, fragment != ""
	}
	name, ok := within(path.Dir(p.Path), u.Path)
	if !ok {
		return target{}, false
	}
	t = target{path: name}
	address := escapePath(name)
	if name != "" && strings.HasSuffix(u.Path, "/") {
		address += "/"
	}
	t.href = p.Files + address + p.Query + fragment
	t.image = p.Raw + address + p.Query
	return t, true
}

// within finds a path that a document in dir names; ok is false if it is out
// of the space, or none that a file of one can have.
func within(dir, name string) (string, bool) {
	if strings.HasPrefix(name, "/") {
		dir = ""
	}
	full := path.Join("/x", dir) // a parent that must not be left
	for seg := range strings.SplitSeq(name, "/") {
		switch seg {
		case "", ".":
		case "..":
			if full == "/x" {
				return "", false
			}
			full = path.Dir(full)
		default:
			full += "/" + seg
		}
	}
	full = strings.TrimPrefix(strings.TrimPrefix(full, "/x"), "/")
	if full == "" {
		return "", true
	}
	_, err := space.ParsePath(full)
	return full, err == nil
}

// escapePath writes a path as part of an address.
func escapePath(p string) string {
	segs := strings.Split(p, "/")
	for i, s := range segs {
		segs[i] = url.PathEscape(s)
	}
	return strings.Join(segs, "/")
}

// isPicture reports whether a browser is shown the file as a picture, by its name.
func isPicture(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif":
		return true
	}
	return false
}
