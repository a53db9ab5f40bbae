package facts

import (
	"cmp"
	"time"
	"unicode/utf8"

	"satchel/internal/frontmatter"
)

// Dir is the directory of all facts.
const Dir = "memory"

// Sources of a fact.
const (
	Explicit = "user_explicit"
	Inferred = "inferred"
	Imported = "imported"
)

// shownBytes limits, in bytes, the value that Read returns. Facts are short, and callers hold
// many of them in memory.
const shownBytes = 2000

// Fact is the content of a fact's file, without its name.
type Fact struct {
	Value   string  `json:"value,omitempty"`
	Cut     bool    `json:"cut,omitempty"` // Value is only the beginning
	Source  string  `json:"source,omitempty"`
	Sure    float64 `json:"-"` // the confidence, if HasSure
	HasSure bool    `json:"-"`
	Client  string  `json:"client,omitempty"` // the client that saved the fact
	Tool    string  `json:"tool,omitempty"`   // the tool with which the client saved it
	// ByPerson reports that a person confirmed the fact, on the pages or on the command line.
	// Otherwise an AI or a program says that the user said it.
	ByPerson bool `json:"confirmed_by_person,omitempty"`
	// FirstSeen, Confirmed and Expires are days, as YYYY-MM-DD, or empty if the file has none.
	// Confirmed is FirstSeen if the file only has the latter.
	FirstSeen string `json:"first_seen,omitempty"`
	Confirmed string `json:"last_confirmed,omitempty"`
	Expires   string `json:"expires,omitempty"`
	// Problem says why the file is not a valid fact, or is empty.
	Problem string `json:"problem,omitempty"`
	// More reports that there is text under the front matter.
	More bool `json:"-"`
}

// Read reads the file of a fact.
func Read(doc []byte) Fact {
	d, err := frontmatter.Parse(doc)
	switch {
	case !utf8.Valid(doc):
		return Fact{Problem: "It is not text."}
	case err != nil:
		return Fact{Problem: "It cannot be read: " + err.Error() + "."}
	case d.Fields == nil:
		return Fact{Problem: "It has no front matter, the lines between two lines “---” at the top."}
	case d.String("value") == "":
		return Fact{Problem: "Its front matter has no value."}
	}
	f := Of(d)
	f.More = len(d.Body) > 0
	if text, ok := d.Fields["value"].(string); ok {
		f.Value = text // with its line ends
	}
	if len(f.Value) > shownBytes {
		n := shownBytes
		for !utf8.RuneStart(f.Value[n]) {
			n--
		}
		f.Value, f.Cut = string([]byte(f.Value[:n])), true
	}
	return f
}

// Whole returns the complete value of a fact, with its line ends. It is empty if the file
// is not a valid fact.
func Whole(doc []byte) string {
	d, err := frontmatter.Parse(doc)
	if err != nil {
		return ""
	}
	if s, ok := d.Fields["value"].(string); ok {
		return s
	}
	return d.String("value")
}

// Of reads the fields of a fact, with the value on one line. An invalid day is left out, so that it
// neither hides a fact nor puts a fact first.
func Of(d frontmatter.Document) Fact {
	f := Fact{
		Value: d.String("value"), Source: d.String("source"), Client: d.String("client"), Tool: d.String("tool"),
		FirstSeen: Day(d.String("first_seen")), Expires: Day(d.String("expires")),
	}
	f.Sure, f.HasSure = d.Number("confidence")
	f.Confirmed = cmp.Or(Day(d.String("last_confirmed")), f.FirstSeen)
	f.ByPerson = f.byPerson()
	return f
}

// Day returns the day of a date or a time, or "" for any other text.
func Day(s string) string {
	if len(s) < len(time.DateOnly) {
		return ""
	}
	if _, err := time.Parse(time.DateOnly, s[:len(time.DateOnly)]); err != nil {
		return ""
	}
	return s[:len(time.DateOnly)]
}

// Percent returns the confidence in percent.
func (f Fact) Percent() float64 { return 100 * f.Sure }

// Over reports whether the fact expired before the given day.
func (f Fact) Over(today string) bool { return f.Expires != "" && f.Expires < today }
