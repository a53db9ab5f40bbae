package render

import (
	"net/url"
	"path"
	"strings"

	"satchel/internal/space"
)

type target struct {
	href     string
	external bool
	image    string // the address of the content, if the target is in the space
	path     string // the path of the target in the space; "" if it is elsewhere
}

// resolve returns the target of a link. ok is false if pages must not link there: dest is
// invalid, its scheme is not http, https or mailto, or its path is outside of the space.
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
		// A user name before the host only makes the address look like one of another site.
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
	slash := strings.HasSuffix(u.Path, "/")
	if p.Find != nil {
		if found, dir, ok := p.Find(name, strings.HasPrefix(u.Path, "/")); ok {
			name, slash = found, dir
		}
	}
	t = target{path: name}
	address := escapePath(name)
	if name != "" && slash {
		address += "/"
	}
	t.href = p.Files + address + p.Query + fragment
	t.image = p.Raw + address + p.Query
	return t, true
}

// within returns the path in the space that name means in a document of the directory dir. It
// returns false if the path is outside of the space, or cannot be the path of a file.
func within(dir, name string) (string, bool) {
	if strings.HasPrefix(name, "/") {
		dir = ""
	}
	full := path.Join("/x", dir) // /x represents the root of the space
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

func escapePath(p string) string {
	segs := strings.Split(p, "/")
	for i, s := range segs {
		segs[i] = url.PathEscape(s)
	}
	return strings.Join(segs, "/")
}

// isPicture reports whether browsers can show a file with this name as a picture.
func isPicture(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif":
		return true
	}
	return false
}
