package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/internal/jsontext"
	"satchel/internal/service"
)

// arguments decodes the arguments of one call strictly. An unknown or repeated name, a wrong type
// and a missing value are problems. The problems of a call are reported together, up to
// maxProblems, each with the name, the mistake and a correct value. A null counts as not given,
// because several clients send null for every optional argument.
type arguments struct {
	values   map[string]json.RawMessage
	known    []string
	unknown  []string // given names that are not in known, at most maxProblems
	problems []string
	closed   bool // problem ignores further problems
}

// parseArguments reads a JSON object. Its names must be in known.
func parseArguments(raw json.RawMessage, maxBytes int, known ...string) *arguments {
	a := &arguments{values: map[string]json.RawMessage{}, known: known}
	switch trimmed := bytes.TrimSpace(raw); {
	case len(trimmed) == 0 || string(trimmed) == "null":
		return a
	case len(raw) > maxBytes:
		return a.unreadable(fmt.Sprintf("The arguments have %d bytes, and %d are allowed.", len(raw), maxBytes))
	case !utf8.Valid(raw):
		return a.unreadable("The arguments are not valid UTF-8.")
	case !jsontext.Paired(raw):
		return a.unreadable(jsontext.Unpaired)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return a.unreadable(fmt.Sprintf("The arguments must be one JSON object%s.", namesHint(known)))
	}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		var v json.RawMessage
		if err == nil && ok {
			err = dec.Decode(&v)
		}
		if err != nil || !ok {
			return a.unreadable("The arguments are not valid JSON.")
		}
		if _, twice := a.values[name]; twice {
			a.problem("The argument %q is given twice.", clip(name, 60))
			continue
		}
		if !slices.Contains(known, name) {
			if len(a.unknown) < maxProblems {
				a.unknown = append(a.unknown, name)
			}
			continue
		}
		a.values[name] = v
	}
	if _, err := dec.Token(); err != nil {
		a.problem("The arguments are not valid JSON.")
	} else if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		a.problem("There is text after the arguments' JSON object.")
	}
	return a
}

func namesHint(known []string) string {
	if len(known) == 0 {
		return ""
	}
	return " with the names " + strings.Join(known, ", ")
}

// maxProblems limits the problems that are reported for one call.
const maxProblems = 10

// unreadable reports why as the only problem, because the arguments could not be read.
func (a *arguments) unreadable(why string) *arguments {
	a.problems, a.unknown, a.closed = []string{why}, nil, true
	return a
}

func (a *arguments) problem(format string, v ...any) {
	if len(a.problems) < maxProblems && !a.closed {
		a.problems = append(a.problems, fmt.Sprintf(format, v...))
	}
}

// explain reports text in place of the usual message about an unknown argument with this name.
func (a *arguments) explain(name, text string) {
	if i := slices.Index(a.unknown, name); i >= 0 {
		a.unknown = slices.Delete(a.unknown, i, i+1)
		a.problem("%s", text)
	}
}

// aboutUnknown returns the message about an argument with an unknown name. It suggests a similar
// argument that was not given.
func (a *arguments) aboutUnknown(name string) string {
	shown := clip(name, 60)
	if len(a.known) == 0 {
		return fmt.Sprintf("The argument %q is unknown: this tool takes none.", shown)
	}
	var missing []string
	for _, k := range a.known {
		if _, given := a.values[k]; !given {
			missing = append(missing, k)
		}
	}
	if near := nearest(name, missing); near != "" {
		return fmt.Sprintf("The argument %q is unknown. Did you mean %q?", shown, near)
	}
	return fmt.Sprintf("The argument %q is unknown. This tool takes %s.", shown, strings.Join(a.known, ", "))
}

// err returns the problems as one fault.Invalid, or nil if there are none.
func (a *arguments) err() error {
	var all []string
	for _, name := range a.unknown {
		all = append(all, a.aboutUnknown(name))
	}
	if all = append(all, a.problems...); len(all) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "%s", strings.Join(all[:min(len(all), maxProblems)], "\n"))
}

func (a *arguments) get(name string) (json.RawMessage, bool) {
	v, ok := a.values[name]
	return v, ok && string(v) != "null"
}

func (a *arguments) wrongType(name, want string, got json.RawMessage) {
	a.problem("The argument %q must be %s, not %s.", name, want, describeJSON(got))
}

// text returns a string with its leading and trailing blanks, or "" if the argument is not given.
func (a *arguments) text(name string) string {
	v, ok := a.get(name)
	if !ok {
		return ""
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		a.wrongType(name, "a string", v)
	}
	return s
}

// required returns a string that must not be blank.
func (a *arguments) required(name, example string) string {
	if _, ok := a.get(name); !ok {
		a.problem("The argument %q is missing: give it a string, for example %s.", name, example)
		return ""
	}
	before := len(a.problems)
	s := a.text(name)
	if len(a.problems) == before && strings.TrimSpace(s) == "" {
		a.problem("The argument %q is empty: give it a string, for example %s.", name, example)
	}
	return s
}

// texts returns a list of strings. The list must not be empty, and has at most max entries.
func (a *arguments) texts(name, example string, max int) []string {
	v, ok := a.get(name)
	if !ok {
		a.problem("The argument %q is missing: give it a list of strings, for example %s.", name, example)
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		a.wrongType(name, "a list of strings, for example "+example, v)
		return nil
	}
	if len(list) == 0 {
		a.problem("The argument %q is an empty list: give it at least one string, for example %s.", name, example)
	}
	if len(list) > max {
		a.problem("The argument %q has %d entries, and %d are allowed in one call.", name, len(list), max)
		return nil
	}
	out := make([]string, 0, len(list))
	for i, e := range list {
		var s string
		if string(e) == "null" || json.Unmarshal(e, &s) != nil {
			a.wrongType(fmt.Sprintf("%s[%d]", name, i), "a string", e)
			continue
		}
		out = append(out, s)
	}
	return out
}

// objects calls f with each object of a list. It reports the problems of an object with its
// place in the list.
func (a *arguments) objects(name, example string, known []string, f func(*arguments)) {
	v, ok := a.get(name)
	if !ok {
		a.problem("The argument %q is missing: give it a list, for example %s.", name, example)
		return
	}
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		a.wrongType(name, "a list, for example "+example, v)
		return
	}
	for i, raw := range list {
		one := parseArguments(raw, len(raw), known...)
		f(one)
		if err := one.err(); err != nil {
			a.problem("%s[%d]: %s", name, i, strings.ReplaceAll(fault.PublicOf(err), "\n", " "))
		}
	}
}

// count returns an integer of at least 1, or def if the argument is not given. It reduces a
// number above max to max, and clipped then says so.
func (a *arguments) count(name string, def, max int) (n int, clipped string) {
	v, ok := a.get(name)
	if !ok {
		return def, ""
	}
	var f float64
	if json.Unmarshal(v, &f) != nil || f != math.Trunc(f) {
		a.wrongType(name, "a whole number", v)
		return def, ""
	}
	switch {
	case f < 1:
		a.problem("The argument %q must be at least 1, not %s.", name, clip(string(v), 30))
		return def, ""
	case f > float64(max):
		return max, fmt.Sprintf("%s was lowered to %d, the most that is allowed.", name, max)
	}
	return int(f), ""
}

func (a *arguments) flag(name string) bool {
	v, ok := a.get(name)
	if !ok {
		return false
	}
	var b bool
	if json.Unmarshal(v, &b) != nil {
		a.wrongType(name, "true or false", v)
	}
	return b
}

// since returns a date (2026-01-31), a time (RFC 3339) or a phrase for a time.
func (a *arguments) since(name string) string {
	s := strings.TrimSpace(a.text(name))
	if _, ok := service.ParseDay(s); service.IsDay(s) && !ok {
		a.problem("The argument %q must be a date such as 2026-01-31, not %s.", name, strconv.Quote(clip(s, 40)))
	}
	return s
}

func describeJSON(v json.RawMessage) string {
	switch v[0] {
	case '"':
		return "the string " + clip(string(v), 40)
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return string(v)
	case 'n':
		return "null"
	}
	return "the number " + clip(string(v), 30)
}

// clip returns the first n code points of s. It adds an ellipsis if s has more.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := 0
	for at := range s {
		if i == n {
			return s[:at] + "…"
		}
		i++
	}
	return s
}
