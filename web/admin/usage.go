package admin

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"satchel/internal/service"
	"satchel/internal/usage"
	"satchel/web"
)

// chartClients limits the clients with a colour of their own.
const chartClients = 5

// Sizes of a chart, in its own units.
const (
	chartWidth, chartHeight = 720, 160
	chartGap                = 2
)

type usagePage struct {
	Days    int
	Kept    int // days that the server keeps
	Periods []web.Link
	Charts  []usageChart
	Area    web.Chart // the area of each chart
	Clients []string  // the clients in the legend, in the order of their colours
}

// usageChart shows one measure: a bar for each day, with a part for each client.
type usageChart struct {
	ID, Name, Hint, Total string
	None                  string // what there was not, if the chart has no bars
	Top                   string // the value at the top of the chart
	First, Last           time.Time
	Bars                  []usageBar
	Head                  []string
	Rows                  [][]string
}

// usageBar is one client's part of the bar of a day.
type usageBar struct {
	web.Bar
	Client int // index of its colour
	Text   string
}

type measure struct {
	id, name, hint, none string
	of                   func(usage.Amounts) int64
	text                 func(int64) string
}

func measures() []measure {
	return []measure{
		{"calls", "Calls", "Requests by AI clients.", "calls", func(a usage.Amounts) int64 { return a.Calls }, web.Grouped},
		{"searches", "Searches", "Searches of the space and its sources.", "searches", func(a usage.Amounts) int64 { return a.Searches }, web.Grouped},
		{"bash", "Bash time", "How long commands of AI clients ran.", "commands", func(a usage.Amounts) int64 { return a.BashMS }, func(ms int64) string {
			tenths := (ms + 50) / 100
			return fmt.Sprintf("%s.%d s", web.Grouped(tenths/10), tenths%10)
		}},
		{"tokens", "Estimated tokens", "About how much text AI clients received.", "tokens", func(a usage.Amounts) int64 { return a.Tokens }, web.Grouped},
	}
}

// showUsage handles GET /admin/usage.
func (s *pages) showUsage(v *web.Visit) error {
	body := usagePage{Days: service.DefaultUsageDays, Kept: int(usage.DefaultKeep / (24 * time.Hour))}
	if n, err := strconv.Atoi(v.R.URL.Query().Get("days")); err == nil && slices.Contains(periods(), n) {
		body.Days = n
	}
	for _, n := range periods() {
		body.Periods = append(body.Periods, web.Link{Name: fmt.Sprint(n, " days"), URL: fmt.Sprint("/admin/usage?days=", n), Here: n == body.Days})
	}
	rows, err := s.Service.ListClientUsage(v.R.Context(), v.Actor(), service.ListClientUsageInput{Days: body.Days})
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		body.Clients, body.Area = mostActive(rows), areaOf(body.Days)
		today := s.Now().UTC().Truncate(24 * time.Hour)
		for _, m := range measures() {
			body.Charts = append(body.Charts, chartOf(m, rows, body.Clients, today.AddDate(0, 0, 1-body.Days), body.Days))
		}
	}
	return s.Page(v, http.StatusOK, "usage", web.Page{Title: "Usage", Current: "/admin", Styles: []string{"admin.css", "usage.css"}, Body: body})
}

func periods() []int { return []int{7, 30, 90} }

// mostActive returns the clients with the most calls. If some are left out, the last entry
// stands for them.
func mostActive(rows []usage.Row) []string {
	calls := map[string]int64{}
	for _, r := range rows {
		calls[r.Client] += r.Calls
	}
	all := slices.SortedFunc(maps.Keys(calls), func(a, b string) int { return cmp.Or(cmp.Compare(calls[b], calls[a]), cmp.Compare(a, b)) })
	if len(all) > chartClients {
		all = slices.DeleteFunc(all, func(c string) bool { return c == usage.Others })
		all = append(all[:min(len(all), chartClients)], usage.Others)
	}
	return all
}

func chartOf(m measure, rows []usage.Row, clients []string, first time.Time, days int) usageChart {
	values := make([][]int64, days) // by day and client
	for i := range values {
		values[i] = make([]int64, len(clients))
	}
	var total int64
	for _, r := range rows {
		day := int(r.Day.Sub(first) / (24 * time.Hour))
		if day < 0 || day >= days {
			continue
		}
		i := slices.Index(clients, r.Client)
		if i < 0 {
			i = len(clients) - 1
		}
		values[day][i] += m.of(r.Amounts)
		total += m.of(r.Amounts)
	}
	var top int64
	for _, day := range values {
		top = max(top, sum(day))
	}
	c := usageChart{ID: m.id, Name: m.name, Hint: m.hint, None: m.none, Total: m.text(total), Top: m.text(top), First: first, Last: first.AddDate(0, 0, days-1), Head: append([]string{"Day"}, clients...)}
	area := areaOf(days)
	area.Top = top
	for d, day := range values {
		date := first.AddDate(0, 0, d).Format(time.DateOnly)
		if sum(day) == 0 {
			continue
		}
		row, below := []string{date}, int64(0)
		for i, n := range day {
			row = append(row, m.text(n))
			if n == 0 {
				continue
			}
			c.Bars = append(c.Bars, usageBar{area.Bar(d, n, below), i, date + ", " + clients[i] + ": " + m.text(n)})
			below += n
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

// areaOf returns the area of a chart of some days.
func areaOf(days int) web.Chart {
	return web.Chart{Width: chartWidth, Height: chartHeight, Gap: chartGap, Count: days}
}

func sum(values []int64) (n int64) {
	for _, v := range values {
		n += v
	}
	return n
}
