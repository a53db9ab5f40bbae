package web

import (
	"net/http"
	"strconv"
)

// MaxShown limits a list on a page, unless the visitor asks for all of it.
const MaxShown = 30

// FirstOf cuts a list to MaxShown entries unless all is set. more is how many it leaves
// out.
func FirstOf[T any](list []T, all bool) (shown []T, more int) {
	if all || len(list) <= MaxShown {
		return list, 0
	}
	return list[:MaxShown], len(list) - MaxShown
}

// PageFrom returns the index at which the requested part of a list begins.
func PageFrom(r *http.Request) int {
	n, err := strconv.Atoi(r.URL.Query().Get("from"))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// SpacesShown limits how many of a person's spaces one page checks.
const SpacesShown = 50
