package query

import (
	"satchel/tools/index/parse"
	"strconv"
	"strings"
	"time"
)

// dated adds a date qualifier and returns the rest of the query. It takes as many of the
// following words as belong to the date ("since:last week"). A negated since: is a before:, and
// the reverse.
func (q *Parsed) dated(name, key, value, rest string, not bool, now time.Time) string {
	f := &q.Filters
	since := func(t time.Time) {
		if t.After(f.Since) {
			f.Since = t
		}
	}
	before := func(t time.Time) {
		if f.Before.IsZero() || t.Before(f.Before) {
			f.Before = t
		}
	}
	set := func(name string, t time.Time) {
		if (name == "since") != not {
			since(t)
		} else {
			before(t)
		}
	}
	if from, to, ok := strings.Cut(value, ".."); ok { // as on GitHub: 2026-01..2026-02
		a, okA := querySpan(from, now)
		b, okB := querySpan(to, now)
		switch {
		case not && okA: // two bounds can only express the part before the excluded range
			before(a.from)
			return rest
		case not && okB:
			since(b.to)
			return rest
		}
		if okA {
			since(a.from)
		}
		if okB {
			before(b.to)
		}
		if okA || okB {
			return rest
		}
	}
	sign := value[:len(value)-len(strings.TrimLeft(value, "<>="))]
	value = value[len(sign):]
	if value == "" {
		value, rest, _ = strings.Cut(strings.TrimLeft(rest, " "), " ")
	}
	text, left := value, rest
	best, bestRest, found := span{}, rest, false
	for range maxDateWords {
		if s, ok := querySpan(text, now); ok {
			best, bestRest, found = s, left, true
		}
		var w string
		if w, left, _ = strings.Cut(strings.TrimLeft(left, " "), " "); w == "" {
			break
		}
		text += " " + w
	}
	if !found {
		q.Notef("%s:%s was left out: a date is written as 2026-01-31, 2026-01, 7d, 2w, 3m or 1y.", key, parse.Clip(value, 40))
		return rest
	}
	switch {
	case name != "date" && sign == "":
		set(name, best.from)
	case sign == ">":
		set("since", best.to)
	case sign == ">=", sign == "=>":
		set("since", best.from)
	case sign == "<":
		set("before", best.from)
	case sign == "<=", sign == "=<":
		set("before", best.to)
	case not: // two bounds can only express the part before an excluded span
		before(best.from)
	default:
		set("since", best.from)
		set("before", best.to)
	}
	return bestRest
}

// span is a range of time, such as a day, a month or a year.
type span struct{ from, to time.Time }

// queryDate reads a date or an age such as 7d. For a month or a year, it returns the first day.
func queryDate(s string, now time.Time) (time.Time, bool) {
	sp, ok := querySpan(s, now)
	return sp.from, ok
}

func querySpan(s string, now time.Time) (span, bool) {
	if s = strings.ToLower(strings.TrimSpace(s)); s == "" || len(s) > 60 {
		return span{}, false
	}
	now = now.UTC()
	if sp, ok := spokenDate(s, now); ok {
		return sp, true
	}
	if sp, ok := writtenMonth(s, now); ok {
		return sp, true
	}
	if t, ok := parse.Date(strings.ToUpper(s)); ok { // the T and the Z of a time must be capitals
		switch len(s) {
		case len("2006"):
			return span{t, t.AddDate(1, 0, 0)}, true
		case len("2006-01"):
			return span{t, t.AddDate(0, 1, 0)}, true
		case len("2006-01-02"):
			return span{t, t.AddDate(0, 0, 1)}, true
		}
		return span{t, t}, true
	}
	for _, l := range []string{"20060102", "2006-1-2", "2006/1/2", "2.1.2006", "January 2, 2006", "Jan 2, 2006", "January 2 2006", "Jan 2 2006", "2 January 2006", "2 Jan 2006"} {
		if t, err := time.Parse(l, s); err == nil && t.Year() >= 1000 {
			return span{t, t.AddDate(0, 0, 1)}, true
		}
	}
	return span{}, false
}

// ages maps the units of an age to hours, days or months.
var ages = map[string]struct{ hours, days, months int }{
	"h": {hours: 1}, "hour": {hours: 1}, "hr": {hours: 1}, "d": {days: 1}, "day": {days: 1}, "w": {days: 7}, "week": {days: 7}, "wk": {days: 7},
	"fortnight": {days: 14}, "m": {months: 1}, "mo": {months: 1}, "month": {months: 1}, "quarter": {months: 3}, "y": {months: 12}, "yr": {months: 12}, "year": {months: 12},
}

var numbers = map[string]int{"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10, "couple": 2, "few": 3}

// spokenDate reads today, yesterday, monday, "last week", "the past 2 weeks",
// "3 days ago", 7d.
func spokenDate(s string, now time.Time) (span, bool) {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	day := func(t time.Time) (span, bool) { return span{t, t.AddDate(0, 0, 1)}, true }
	switch s {
	case "now", "today":
		return day(today)
	case "yesterday":
		return day(today.AddDate(0, 0, -1))
	}
	words := strings.Fields(strings.NewReplacer("-", " ", "_", " ", "+", " ").Replace(s))
	if len(words) > 0 && words[0] == "the" {
		words = words[1:]
	}
	which := ""
	if len(words) > 0 {
		switch words[0] {
		case "last", "past", "previous", "this", "current":
			which, words = words[0], words[1:]
		}
	}
	ago := len(words) > 1 && (words[len(words)-1] == "ago" || words[len(words)-1] == "old")
	if ago {
		words = words[:len(words)-1]
	}
	n := 0
	switch len(words) {
	case 1:
		i := 0
		for i < len(words[0]) && parse.IsDigit(words[0][i]) {
			i++
		}
		if i > 0 {
			n, _ = strconv.Atoi(words[0][:min(i, 6)])
			words[0] = words[0][i:]
		} else if which != "" {
			n = 1
		}
	case 2:
		if n = numbers[words[0]]; n == 0 {
			n, _ = strconv.Atoi(words[0])
		}
		words = words[1:]
	}
	if len(words) != 1 {
		return span{}, false
	}
	for d := range 7 { // monday, "last mon"
		name := strings.ToLower(time.Weekday(d).String())
		if w := words[0]; len(w) >= 3 && strings.HasPrefix(name, w) && n <= 1 && (n == 0 || which != "") {
			back := (int(today.Weekday()) - d + 7) % 7
			if back == 0 && which == "last" {
				back = 7
			}
			return day(today.AddDate(0, 0, -back))
		}
	}
	unit, ok := ages[words[0]]
	if !ok {
		unit, ok = ages[strings.TrimSuffix(words[0], "s")]
	}
	if !ok || n < 1 || n > 9999 {
		return span{}, false
	}
	if which == "this" || which == "current" {
		n = 0
		switch {
		case unit.months == 12:
			return span{time.Date(now.Year(), 1, 1, 0, 0, 0, 0, time.UTC), now}, true
		case unit.months > 0:
			return span{time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC), now}, true
		case unit.days == 7:
			return span{today.AddDate(0, 0, -(int(today.Weekday())+6)%7), now}, true
		}
		return day(today)
	}
	if unit.hours > 0 {
		t := now.Add(-time.Duration(n*unit.hours) * time.Hour)
		return span{t, now}, true
	}
	return span{now.AddDate(0, -n*unit.months, -n*unit.days), now}, true
}

// writtenMonth reads "march", "march 2026" and 2026-q1. A month without a year is the most
// recent month of that name.
func writtenMonth(s string, now time.Time) (span, bool) {
	year, quarter, ok := strings.Cut(s, "-q")
	if y, err := strconv.Atoi(year); ok && err == nil && len(year) == 4 && len(quarter) == 1 && quarter[0] >= '1' && quarter[0] <= '4' {
		t := time.Date(y, time.Month(1+3*int(quarter[0]-'1')), 1, 0, 0, 0, 0, time.UTC)
		return span{t, t.AddDate(0, 3, 0)}, true
	}
	words := strings.Fields(s)
	if len(words) == 0 || len(words) > 2 || len(words[0]) < 3 {
		return span{}, false
	}
	for m := time.January; m <= time.December; m++ {
		if !strings.HasPrefix(strings.ToLower(m.String()), words[0]) && words[0] != "sept" {
			continue
		}
		if words[0] == "sept" && m != time.September {
			continue
		}
		y := now.Year()
		if len(words) == 2 {
			var err error
			if y, err = strconv.Atoi(words[1]); err != nil || len(words[1]) != 4 {
				return span{}, false
			}
		} else if m > now.Month() {
			y--
		}
		t := time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
		return span{t, t.AddDate(0, 1, 0)}, true
	}
	return span{}, false
}
