package admin

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Audit lists the newest acts, with the names of who did them and what they are
// about.
func (l *Local) Audit(ctx context.Context, r AuditRequest) ([]AuditEntry, error) {
	f := store.AuditFilter{Act: r.Act}
	if r.User != "" {
		var err error
		if f.Users, err = l.everyoneCalled(ctx, r.User); err != nil {
			return nil, err
		}
	}
	rows, err := l.Accounts.AuditOf(ctx, f, 0, r.Limit)
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
	ids := make([]string, 0, len(seen))
	for id := range seen {
		ids = append(ids, id)
	}
	names := map[string]string{}
	for part := range slices.Chunk(ids, 1000) {
		more, err := l.Accounts.NamesOf(ctx, part)
		if err != nil {
			return nil, err
		}
		for id, name := range more {
			names[id] = name
		}
	}
	out := make([]AuditEntry, len(rows))
	for i, row := range rows {
		e := AuditEntry{
			At: row.At, User: nameOr(names, string(row.Actor.User)), Via: row.Actor.Via, Action: row.Action,
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

// everyoneCalled returns who has the name, and who had it and was removed.
func (l *Local) everyoneCalled(ctx context.Context, name string) ([]space.UserID, error) {
	all, err := l.Accounts.UserNames(ctx)
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
		return nil, fault.New(fault.NotFound, "There never was a user %q.", oneLine(name))
	}
	return out, nil
}

// detailOf reads an entry's detail, with times as RFC 3339 has them; a time that
// never comes is left out.
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

// idsOf returns the ids that a detail has under the keys that hold some: what a
// client calls itself is never taken for one.
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

// about is what an act is about, as people call it: a session and a sign-in link are
// their user's, and what else has no name is called by its id.
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
