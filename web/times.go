package web

import (
	"fmt"
	"html/template"
	"strconv"
	"time"
)

// TimeForm is the form in which a page shows a time.
type TimeForm string

const (
	TimeWhole TimeForm = ""
	TimeDay   TimeForm = "day"   // the day
	TimeClock TimeForm = "clock" // the time of day
	TimeAgo   TimeForm = "ago"   // how long ago the time was, or how soon it is; the day from 30 days on
)

// timeScript converts the times of a page to the reader's time zone.
const timeScript = "time.js"

// timesAt returns the function with which templates print times. It prints UTC, because
// the server does not know the reader's time zone; timeScript rewrites elements with
// data-as. The zero time is "never".
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
		default:
			as, text = "whole", t.Format("2 Jan 2006, 15:04 UTC")
		}
		title := ""
		if as == TimeAgo || as == TimeDay {
			title = t.Format(` title="2006-01-02 15:04:05 UTC"`)
		}
		// No part of this HTML is user input.
		return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `" data-as="` + string(as) + `"` + title + `>` + text + `</time>`)
	}
}

// dateOf prints a date such as 2026-11-03, which has no time zone. timeScript writes it in the
// reader's form.
func dateOf(date string) template.HTML {
	t, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return template.HTML(template.HTMLEscapeString(date)) //nolint:gosec // it is escaped
	}
	return template.HTML(`<time datetime="` + date + `" data-as="date">` + Day(t) + `</time>`) //nolint:gosec // it is a date
}

// Day formats the day of a time, in UTC.
func Day(t time.Time) string { return t.UTC().Format("2 Jan 2006") }

// agoOf says roughly how long ago t was, or how soon it is. It returns "" from 30 days on.
func agoOf(now, t time.Time) string {
	d := now.Sub(t)
	form := "%s ago"
	if d <= -time.Minute {
		d, form = -d, "in %s"
	}
	count := func(n int, unit string) string {
		if n != 1 {
			unit += "s"
		}
		return fmt.Sprintf(form, strconv.Itoa(n)+" "+unit)
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
