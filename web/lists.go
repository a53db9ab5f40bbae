package web

import (
	"net/http"
	"strconv"
)

// MaxShown limits a list on a page, unless the visitor asks for all of it.
const MaxShown = 30

// FirstOf cuts a list to MaxShown entries unless all is set. more is how many entries it leaves
// out.
func FirstOf[T any](list []T, all bool) (shown []T, more int) {
	if all || len(list) <= MaxShown {
		return list, 0
	}
	return list[:MaxShown], len(list) - MaxShown
}

// PartOf returns the part of a list that begins at the index in the query parameter from, with at
// most MaxShown entries. next is the index at which the next part begins; 0 if there is none.
func PartOf[T any](r *http.Request, list []T) (part []T, next int) {
	from, _ := strconv.Atoi(r.URL.Query().Get("from")) // an invalid number means the beginning
	from = min(max(0, from), max(0, len(list)-1))
	end := min(from+MaxShown, len(list))
	if end < len(list) {
		next = end
	}
	return list[from:end], next
}

// SpacesShown limits how many of a person's spaces one page checks.
const SpacesShown = 50
