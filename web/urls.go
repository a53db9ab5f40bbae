package web

import (
	"net/url"
	"strings"

	"satchel/internal/space"
)

// SpaceURL is the address of what a space's page of a kind shows at a path, on
// this server.
func SpaceURL(id space.SpaceID, kind string, p space.Path) string {
	u := url.URL{Path: "/spaces/" + string(id) + "/" + kind + "/" + string(p)}
	return u.EscapedPath()
}

// PageURL is the address of one of a space's pages: about a path, where it is
// not empty, and at a commit, where that is not.
func PageURL(id space.SpaceID, page string, p space.Path, at space.CommitID) string {
	u := "/spaces/" + url.PathEscape(string(id)) + "/" + page + "/"
	if p != "" {
		segs := strings.Split(string(p), "/")
		for i, seg := range segs {
			segs[i] = url.PathEscape(seg)
		}
		u += strings.Join(segs, "/")
	}
	return u + AtQuery(at)
}

func AtQuery(at space.CommitID) string {
	if at == "" {
		return ""
	}
	return "?at=" + string(at)
}

// SpacePath is the address of a page of a space.
func SpacePath(id space.SpaceID, rest string) string { return "/spaces/" + string(id) + "/" + rest }

// URLQuery encodes names and values.
func URLQuery(pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q.Encode()
}
