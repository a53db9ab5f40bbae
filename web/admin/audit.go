package admin

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/web"
)

// Limits of the audit log's pages.
const (
	auditRows  = 50
	auditPart  = 1000 // entries that an export reads at once
	auditNames = 200  // people, and clients, that the filter offers
)

// auditFilter is the filter in the address of the page.
type auditFilter struct {
	User, Act, Client, Via string
	Since, Until           string // days
}

// Any reports whether the filter leaves something out.
func (f auditFilter) Any() bool { return f != auditFilter{} }

// query returns the filter as the query of an address.
func (f auditFilter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"user": f.User, "act": f.Act, "client": f.Client, "via": f.Via, "since": f.Since, "until": f.Until} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

type auditPage struct {
	Filter    auditFilter
	Rows      []auditEntry
	Acts      []actGroup
	People    []string
	Clients   []string
	Older     string // the address of older entries; "" if there are none
	CSV, JSON string
}

// actGroup is a kind of actions that people can choose.
type actGroup struct{ Act, Name string }

type auditEntry struct {
	event
	Who      string // a name, or "" for the operator, GitHub and the server
	Sentence []phrase
	Way      string
	Details  []auditDetail
}

// auditDetail is a detail of an entry, as the log has it.
type auditDetail struct{ Key, Text string }

func actGroups() []actGroup {
	return []actGroup{
		{"session", "Sign-ins"}, {"link", "Sign-in links"}, {"passkey", "Passkeys"}, {"identity", "Other ways to sign in"}, {"user", "People"}, {"invitation", "Invites"},
		{"member", "Members of spaces"}, {"space", "Spaces"}, {"review", "Confirmed changes"}, {"source", "Sources"}, {"grant", "Connected clients"},
		{"client", "Registered clients"}, {"key", "Keys"}, {"github", "GitHub"}, {"settings", "Settings"},
	}
}

// auditInput reads the filter of a request.
func auditInput(v *web.Visit) (f auditFilter, in service.ListAuditInput, err error) {
	q := v.R.URL.Query()
	get := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	f = auditFilter{User: get("user"), Act: get("act"), Client: get("client"), Via: get("via"), Since: get("since"), Until: get("until")}
	in = service.ListAuditInput{User: f.User, Act: f.Act, Client: f.Client, Via: f.Via}
	for _, d := range []struct {
		text string
		to   *time.Time
		days int
	}{{f.Since, &in.Since, 0}, {f.Until, &in.Until, 1}} {
		if d.text == "" {
			continue
		}
		at, err := time.Parse(time.DateOnly, d.text)
		if err != nil {
			return f, in, fault.New(fault.Invalid, "Write days like 2026-11-30.")
		}
		*d.to = at.AddDate(0, 0, d.days)
	}
	for _, text := range []string{f.User, f.Act, f.Client, f.Via} {
		if !web.Textual(text) {
			return auditFilter{}, in, fault.New(fault.Invalid, "The filter is not text. Type it again.")
		}
	}
	return f, in, nil
}

// showAudit handles GET /admin/audit.
func (s *pages) showAudit(v *web.Visit) error {
	f, in, err := auditInput(v)
	page := web.Page{Title: "Audit log", Current: "/admin", Styles: []string{"admin.css"}}
	body := auditPage{Filter: f, Acts: actGroups()}
	status := http.StatusOK
	var rows []service.AuditEntry
	if err == nil {
		in.Before, _ = strconv.ParseInt(v.R.URL.Query().Get("before"), 10, 64)
		in.Before, in.Limit = max(in.Before, 0), auditRows+1
		rows, err = s.Service.ListAudit(v.R.Context(), v.Actor(), in)
	}
	switch fault.CodeOf(err) {
	case "":
	case fault.Invalid, fault.NotFound:
		status, page.Problem = http.StatusBadRequest, fault.PublicOf(err)
	default:
		return err
	}
	q := f.query()
	if len(rows) > auditRows {
		rows = rows[:auditRows]
		older := maps.Clone(q)
		older.Set("before", strconv.FormatInt(rows[len(rows)-1].ID, 10))
		body.Older = "/admin/audit?" + older.Encode()
	}
	for _, r := range rows {
		body.Rows = append(body.Rows, s.auditEntry(r))
	}
	people, err := s.Service.ListUsers(v.R.Context(), v.Actor(), service.None{})
	if err != nil {
		return err
	}
	for _, u := range people[:min(len(people), auditNames)] {
		body.People = append(body.People, u.Name)
	}
	clients, err := s.Service.ListClients(v.R.Context(), v.Actor(), service.None{})
	if err != nil {
		return err
	}
	for _, c := range clients {
		if c.Name != "" && !slices.Contains(body.Clients, c.Name) && len(body.Clients) < auditNames {
			body.Clients = append(body.Clients, c.Name)
		}
	}
	q.Set("format", "csv")
	body.CSV = "/admin/audit/export?" + q.Encode()
	q.Set("format", "jsonl")
	body.JSON = "/admin/audit/export?" + q.Encode()
	page.Body = body
	return s.Page(v, status, "audit", page)
}

func (s *pages) auditEntry(e service.AuditEntry) auditEntry {
	out := auditEntry{event: event{e, s.words}}
	out.Sentence, out.Way = out.sentence(), out.way()
	if who := out.who(); who.Name {
		out.Who = who.Text
	}
	add := func(key, text string) {
		if text != "" {
			out.Details = append(out.Details, auditDetail{web.Shorten(strings.ReplaceAll(key, "_", " "), 40), web.Shorten(text, 200)})
		}
	}
	add("action", e.Action)
	add("subject", e.Subject)
	for _, key := range slices.Sorted(maps.Keys(e.Detail)) {
		add(key, out.detail(key))
	}
	return out
}

// exportAudit handles GET /admin/audit/export. It answers with the newest entries first.
func (s *pages) exportAudit(v *web.Visit) error {
	_, in, err := auditInput(v)
	if err != nil {
		return err
	}
	format := cmp.Or(v.R.URL.Query().Get("format"), "csv")
	if format != "csv" && format != "jsonl" {
		return fault.New(fault.Invalid, "The format must be csv or jsonl.")
	}
	in.Limit = auditPart
	part, err := s.Service.ListAudit(v.R.Context(), v.Actor(), in)
	if err != nil {
		return err
	}
	h := v.W.Header()
	h.Set("Content-Disposition", web.Attachment("satchel-audit-"+s.Now().UTC().Format(time.DateOnly)+"."+format))
	write := writeAuditLines(v.W)
	h.Set("Content-Type", "application/jsonl; charset=utf-8")
	if format == "csv" {
		h.Set("Content-Type", "text/csv; charset=utf-8")
		write = writeAuditCSV(v.W)
	}
	for len(part) > 0 {
		if err := write(part); err != nil {
			return nil // the browser is gone
		}
		if len(part) < auditPart {
			break
		}
		in.Before = part[len(part)-1].ID
		if part, err = s.Service.ListAudit(v.R.Context(), v.Actor(), in); err != nil {
			panic(http.ErrAbortHandler) // so that the browser does not take a part for the whole
		}
	}
	return nil
}

func writeAuditLines(w http.ResponseWriter) func([]service.AuditEntry) error {
	enc := json.NewEncoder(w)
	return func(part []service.AuditEntry) error {
		for _, e := range part {
			if err := enc.Encode(e); err != nil {
				return err
			}
		}
		return nil
	}
}

func writeAuditCSV(w http.ResponseWriter) func([]service.AuditEntry) error {
	out := csv.NewWriter(w)
	head := []string{"at", "user", "via", "action", "subject", "about", "detail"}
	return func(part []service.AuditEntry) error {
		if head != nil {
			_ = out.Write(head) // out.Error reports a failure below
			head = nil
		}
		for _, e := range part {
			detail, err := json.Marshal(e.Detail)
			if err != nil {
				return err
			}
			_ = out.Write([]string{e.At.UTC().Format(time.RFC3339), cell(e.User), cell(e.Via), e.Action, cell(e.Subject), cell(e.About), cell(string(detail))})
		}
		out.Flush()
		return out.Error()
	}
}

// cell returns text in a form that no spreadsheet takes for a formula. People and clients choose
// some of the texts.
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
