package web

import (
	"html/template"
	"strconv"
	"time"
)

// TimeForm is how much of a time a page shows.
type TimeForm string

const (
	TimeWhole  TimeForm = ""
	TimeDay    TimeForm = "day"    // its day
	TimeClock  TimeForm = "clock"  // its time of day
	TimeSecond TimeForm = "second" // the same, with its seconds
	TimeAgo    TimeForm = "ago"    // how long ago it was, or its day
)

// timeScript writes the times of a page for the zone of its reader.
const timeScript = "time.js"

// timesAt returns the one function by which templates print times. They are UTC
// and say so, since a page without a script does not know where its reader is;
// timeScript rewrites what has data-as. The zero time is "never".
func timesAt(now func() time.Time) func(time.Time, ...TimeForm) template.HTML {
	return func(t time.Time, form ...TimeForm) template.HTML {
		if t.IsZero() {
			return "never"
		}
		t = t.UTC()
		as, text := TimeWhole, ""
		if len(form) > 0 {
			as = form[0]
		}
		if as == TimeAgo {
			if text = agoOf(now(), t); text == "" {
				as = TimeDay
			}
		}
		switch as {
		case TimeAgo:
		case TimeDay:
			text = Day(t) + " UTC"
		case TimeClock:
			text = t.Format("15:04 UTC")
		case TimeSecond:
			text = t.Format("15:04:05 UTC")
		default:
			as, text = "whole", t.Format("2 Jan 2006, 15:04 UTC")
		}
		title := ""
		if as == TimeAgo || as == TimeDay {
			title = t.Format(` title="2006-01-02 15:04:05 UTC"`)
		}
		// Nothing of it is anybody's text.
		return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `" data-as="` + string(as) + `"` + title + `>` + text + `</time>`)
	}
}

// Day is the day of a time, in UTC.
func Day(t time.Time) string { return t.UTC().Format("2 Jan 2006") }

// agoOf writes how long ago something was, as exactly as people ask; "" where they
// ask for the day.
func agoOf(now, t time.Time) string {
	d := now.Sub(t)
	count := func(n int, unit string) string {
		if n == 1 {
			return "1 " + unit + " ago"
		}
		return strconv.Itoa(n) + " " + unit + "s ago"
	}
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return count(int(d/time.Minute), "minute")
	case d < 24*time.Hour:
		return count(int(d/time.Hour), "hour")
	case d < 30*24*time.Hour:
		return count(int(d/(24*time.Hour)), "day")
	}
	return ""
}
