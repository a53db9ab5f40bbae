package web

import (
	"net/http"
	"strconv"
)

// MaxShown bounds a list on a page that was not asked for all of it.
const MaxShown = 30

// FirstOf cuts a list to what a page shows, and says how many it leaves out.
func FirstOf[T any](list []T, all bool) (shown []T, more int) {
	if all || len(list) <= MaxShown {
		return list, 0
	}
	return list[:MaxShown], len(list) - MaxShown
}

// PageFrom is where a list that is shown in parts begins.
func PageFrom(r *http.Request) int {
	n, err := strconv.Atoi(r.URL.Query().Get("from"))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// SpacesShown bounds how many of a person's spaces one page looks into.
const SpacesShown = 50
