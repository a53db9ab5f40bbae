package cli

import (
	"testing"
	"time"

	"satchel/internal/service"
)

func TestAuditDetail(t *testing.T) {
	names := map[string]string{"u_1": "bob", "s_1": "ann/work"}
	expires := time.Date(2026, 11, 29, 11, 43, 0, 0, time.Local)
	for name, tt := range map[string]struct {
		about  string
		detail map[string]any
		want   string
	}{
		"nothing":                             {"", nil, ""},
		"ids":                                 {"laptop", map[string]any{"user": "u_1", "space": "s_1", "client": "c_1"}, "client=c_1 space=ann/work user=bob"},
		"a time":                              {"x", map[string]any{"expires": expires.UTC().Format(time.RFC3339)}, "expires=2026-11-29T11:43"},
		"numbers and lists":                   {"x", map[string]any{"grants_revoked": 12.0, "scopes": []any{"read", "write"}, "admin": true}, "admin=true grants_revoked=12 scopes=read,write"},
		"what is said before":                 {"ann/work", map[string]any{"name": "work", "role": "", "by": nil}, ""},
		"the name of another":                 {"ann/homework", map[string]any{"name": "work"}, "name=work"},
		"words":                               {"x", map[string]any{"agent": `Some "browser" 1.0`}, `agent="Some \"browser\" 1.0"`},
		"Attack: a further key":               {"x", map[string]any{"name": "a user=ann"}, `name="a user=ann"`},
		"Attack: what a terminal acts upon":   {"x", map[string]any{"name": "a\x1b[2J\nb"}, `name="a\x1b[2J\nb"`},
		"Attack: a name that is another's id": {"x", map[string]any{"name": "u_1"}, "name=u_1"},
		"Attack: a time where there should be none": {"x", map[string]any{"name": "2026-11-29T11:43:00Z"}, "name=2026-11-29T11:43:00Z"},
	} {
		if got := auditDetail(service.AuditEntry{About: tt.about, Detail: tt.detail, Names: names}); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
