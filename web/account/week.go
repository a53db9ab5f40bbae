package account

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// Limits of the overview of a week.
const (
	weekDays    = 7
	weekCommits = 1000 // maximum number of changes that are counted
	weekClients = 5    // maximum number of clients that are listed
)

// Sizes of the chart of a week, in its own units.
const (
	chartWide, chartHigh = 274, 64
	chartGap             = 6
	chartWords           = 20 // the height of the line of days below the bars
)

// week is what clients changed in the last seven days. The days are in UTC.
type week struct {
	Today, Whole int // number of changes today, and in all seven days
	Cut          bool
	Clients      []clientWeek
	More         int // number of clients that are not listed
	Bars         []bar
	Width        int    // width of the chart
	Height       int    // height of the chart, with the line of days
	Label        string // the chart in words
	From         string // the first day, for the address of its changes
	Day          string // today, for the address of its changes
}

// clientWeek is what one client changed.
type clientWeek struct {
	Name         string // the name by which the activity page filters
	Today, Whole int
}

// bar is a day of the chart.
type bar struct {
	web.Bar
	Middle, Base float64 // position of the text Day
	Day, Title   string
	Count        int
}

// weekOf counts the changes by clients in the last seven days.
func (s *pages) weekOf(ctx context.Context, m service.View) (week, error) {
	key, err := s.knownKeyOf(ctx, m)
	if err != nil {
		return week{}, unlessEmpty(err)
	}
	if w, ok := s.weeks.Get(key); ok {
		return w, nil
	}
	w, err := readWeek(ctx, m, s.Now())
	if err == nil {
		s.weeks.Add(key, w)
	}
	return w, err
}

func readWeek(ctx context.Context, m service.View, now time.Time) (week, error) {
	today := now.UTC().Truncate(24 * time.Hour)
	from := today.AddDate(0, 0, 1-weekDays)
	w := week{From: from.Format("2006-01-02T15:04"), Day: today.Format("2006-01-02T15:04")}
	list, err := m.Log(ctx, space.LogQuery{Tools: space.AITools(), Since: from, Limit: weekCommits})
	if err != nil {
		return w, err
	}
	w.Cut = len(list) == weekCommits
	counts := [weekDays]int{}
	by := map[string]*clientWeek{}
	for _, c := range list {
		name := space.ClientName(c.Client)
		of := by[name]
		if of == nil {
			of = &clientWeek{Name: name}
			by[name] = of
		}
		day := min(max(int(c.Time.UTC().Sub(from)/(24*time.Hour)), 0), weekDays-1)
		counts[day]++
		w.Whole++
		of.Whole++
		if day == weekDays-1 {
			w.Today++
			of.Today++
		}
	}
	for _, of := range by {
		w.Clients = append(w.Clients, *of)
	}
	slices.SortFunc(w.Clients, func(a, b clientWeek) int {
		return cmp.Or(cmp.Compare(b.Today, a.Today), cmp.Compare(b.Whole, a.Whole), cmp.Compare(a.Name, b.Name))
	})
	if n := len(w.Clients) - weekClients; n > 0 {
		w.Clients, w.More = w.Clients[:weekClients], n
	}
	w.Bars, w.Label = barsOf(counts, from)
	w.Width, w.Height = chartWide, chartHigh+chartWords
	return w, nil
}

// barsOf returns the bars of the chart, and the chart in words.
func barsOf(counts [weekDays]int, from time.Time) (bars []bar, label string) {
	area := web.Chart{Width: chartWide, Height: chartHigh, Gap: chartGap, Count: weekDays, Top: int64(slices.Max(counts[:]))}
	var words []string
	for i, n := range counts {
		day := from.AddDate(0, 0, i)
		if area.Least = 2; n > 0 {
			area.Least = 4
		}
		b := bar{Bar: area.Bar(i, int64(n), 0), Base: chartHigh + 0.8*chartWords, Day: day.Format("Mon")[:1], Count: n}
		b.Middle = b.X + b.Width/2
		b.Title = day.Format("Monday") + ": " + web.Plural(n, "1 change", "%d changes")
		words = append(words, fmt.Sprintf("%s %d", day.Format("Monday"), n))
		bars = append(bars, b)
	}
	return bars, "Changes by your AIs each day: " + strings.Join(words, ", ")
}
