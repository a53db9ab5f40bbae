package web

import (
	"net/url"
	"strings"

	"satchel/internal/space"
)

// SpaceURL returns the address of a page of a space for a path. kind names the page, such as
// "edit".
func SpaceURL(id space.SpaceID, kind string, p space.Path) string {
	u := url.URL{Path: "/spaces/" + string(id) + "/" + kind + "/" + string(p)}
	return u.EscapedPath()
}

// PageURL returns the address of a page of a space, such as "history", for a path at a commit.
// p and at may be empty.
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

// AtQuery returns the query that selects a commit, or "" for head.
func AtQuery(at space.CommitID) string {
	if at == "" {
		return ""
	}
	return "?at=" + string(at)
}

// SpacePath returns the address of a page of a space. rest is the part after the space's ID. It
// may have a query, and is not escaped.
func SpacePath(id space.SpaceID, rest string) string { return "/spaces/" + string(id) + "/" + rest }

// URLQuery encodes pairs of names and values as a query.
func URLQuery(pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q.Encode()
}
