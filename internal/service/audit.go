package service

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// ListAuditInput selects audit entries.
type ListAuditInput struct {
	Limit int    `json:"limit"` // at most 1000
	User  string `json:"user"`  // entries by and about people who have or had this name
	Act   string `json:"act"`   // selects actions that begin with this text
	// Client is the name of a client or a key. Via says where the action
	// came from, such as "web".
	Client string `json:"client,omitempty"`
	Via    string `json:"via,omitempty"`
	// Since and Until limit the times of the entries. An entry at Until itself is left out.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Before continues after the entry with this ID.
	Before int64 `json:"before,omitempty"`
}

// AuditEntry is an entry of the audit log.
type AuditEntry struct {
	ID      int64     `json:"-"` // for ListAuditInput.Before
	At      time.Time `json:"at"`
	User    string    `json:"user,omitempty"`
	Via     string    `json:"via"`
	Action  string    `json:"action"`
	Subject string    `json:"subject"` // an ID
	About   string    `json:"about"`   // the name of the subject
	// Detail holds IDs and formatted times, and never a secret. Names holds the names of
	// the IDs.
	Detail map[string]any    `json:"detail"`
	Names  map[string]string `json:"names"`
}

// ListAudit lists audit entries, newest first.
func (s *Service) ListAudit(ctx context.Context, a Actor, in ListAuditInput) ([]AuditEntry, error) {
	if err := s.authorize(a, "ListAudit"); err != nil {
		return nil, err
	}
	f := store.AuditFilter{Act: in.Act, Via: in.Via, Client: in.Client, Since: in.Since, Until: in.Until}
	if in.User != "" {
		var err error
		if f.Users, err = s.everyoneCalled(ctx, in.User); err != nil {
			return nil, err
		}
	}
	rows, err := s.accounts.AuditOf(ctx, f, in.Before, in.Limit)
	if err != nil {
		return nil, err
	}
	details := make([]map[string]any, len(rows))
	seen := map[string]bool{}
	for i, row := range rows {
		details[i] = detailOf(row.Detail)
		seen[string(row.Actor.User)], seen[row.Subject] = true, true
		for _, id := range idsOf(details[i]) {
			seen[id] = true
		}
	}
	delete(seen, "")
	names := map[string]string{}
	for part := range slices.Chunk(slices.Collect(maps.Keys(seen)), 1000) {
		more, err := s.accounts.NamesOf(ctx, part)
		if err != nil {
			return nil, err
		}
		maps.Copy(names, more)
	}
	out := make([]AuditEntry, len(rows))
	for i, row := range rows {
		e := AuditEntry{
			ID: row.ID, At: row.At, User: nameOr(names, string(row.Actor.User)), Via: row.Actor.Via, Action: row.Action,
			Subject: row.Subject, About: about(row, details[i], names), Detail: details[i], Names: map[string]string{},
		}
		for _, id := range idsOf(e.Detail) {
			if name := names[id]; name != "" {
				e.Names[id] = name
			}
		}
		out[i] = e
	}
	return out, nil
}

// everyoneCalled returns the person who has the name, and the removed people who had it.
func (s *Service) everyoneCalled(ctx context.Context, name string) ([]space.UserID, error) {
	all, err := s.accounts.UserNames(ctx)
	if err != nil {
		return nil, err
	}
	var out []space.UserID
	for id, u := range all {
		if u.Name == name {
			out = append(out, id)
		}
	}
	if len(out) == 0 {
		return nil, fault.New(fault.NotFound, "Nobody on this server has or had the name %q. Check the name.", strings.Map(printable, name))
	}
	return out, nil
}

// detailOf reads an entry's detail. It formats the time of expiry (RFC 3339), and omits an
// expiry of zero, which means never.
func detailOf(text string) map[string]any {
	var d map[string]any
	if json.Unmarshal([]byte(text), &d) != nil || d == nil {
		return map[string]any{}
	}
	if at, ok := d["expires"].(float64); ok {
		if d["expires"] = time.UnixMilli(int64(at)).UTC().Format(time.RFC3339); at == 0 {
			delete(d, "expires")
		}
	}
	return d
}

// idsOf returns the IDs in a detail. It reads only the keys that hold IDs, so that it does
// not mistake a client name for an ID.
func idsOf(detail map[string]any) (ids []string) {
	for _, key := range []string{"user", "by", "owner", "from", "to", "space", "client"} {
		if id, ok := detail[key].(string); ok && id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

func nameOr(names map[string]string, id string) string {
	if name := names[id]; name != "" {
		return name
	}
	return id
}

// about returns the name of an entry's subject. A session or a sign-in link is named by its
// user. A subject without a name is named by its ID.
func about(e store.Entry, detail map[string]any, names map[string]string) string {
	own, _ := detail["name"].(string)
	user := ""
	switch {
	case strings.HasPrefix(e.Action, "session."):
		user, _ = detail["user"].(string)
	case e.Action == "link.use":
		user = string(e.Actor.User)
	}
	for _, name := range []string{names[e.Subject], own, names[user]} {
		if name != "" {
			return name
		}
	}
	return e.Subject
}

// printable returns r, or a space if r is not printable.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return ' '
}
