package web

import (
	"time"

	"satchel/internal/facts"
)

// NewFact is the file of a fact that a person adds.
func NewFact(value, expires string, now time.Time) string {
	today := facts.Raw(now.UTC().Format(time.DateOnly))
	f := []facts.Field{
		{Key: "value", Value: value}, {Key: "confidence", Value: facts.Raw("1")}, {Key: "source", Value: facts.Explicit}, {Key: "client", Value: "browser"},
		{Key: "first_seen", Value: today}, {Key: "last_confirmed", Value: today},
	}
	if expires != "" {
		f = append(f, facts.Field{Key: "expires", Value: facts.Raw(expires)})
	}
	return string(facts.New(f...))
}
