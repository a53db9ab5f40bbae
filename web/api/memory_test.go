package api_test

import (
	"fmt"
	"net/http"
	"testing"
)

func ifMatch(value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("If-Match", value) }
}

// A key reads and changes the facts of its own space.
func TestMemory(t *testing.T) {
	w := newWorld(t)
	w.library.Write(map[string]string{"memory/tea.md": "not a fact\n"})
	type fact struct{ Path, Value, Source, Problem, Client string }
	list := func() []fact {
		t.Helper()
		a := w.ask("GET", "/api/memory", "ann-reads", nil)
		want(t, "the list", a, 200, "")
		var v struct{ Facts []fact }
		a.into(t, &v)
		return v.Facts
	}
	outcome := func(body string) string {
		t.Helper()
		a := w.ask("PUT", "/api/memory", "ann", body)
		want(t, body, a, 200, "")
		var v struct {
			Facts []struct {
				Outcome string
				Alike   []fact
			}
		}
		a.into(t, &v)
		return fmt.Sprint(v.Facts)
	}
	if got := list(); len(got) != 1 || got[0].Problem == "" {
		t.Errorf("%+v", got)
	}
	if got := outcome(`{"facts": [{"type": "preference", "key": "seat", "value": "Prefers window seats", "explicit": true}]}`); got != "[{added []}]" {
		t.Error(got)
	}
	if got := outcome(`{"facts": [{"type": "preference", "key": "seat", "value": "Aisle", "confidence": 1}, {"type": "a", "key": "b", "value": "c", "expires": "2999-01-31"}]}`); got != "[{kept []} {added []}]" {
		t.Error(got)
	}
	if got := list(); len(got) != 3 || got[1] != (fact{Path: "memory/preference/seat.md", Value: "Prefers window seats", Source: "user_explicit", Client: "key of ann"}) {
		t.Errorf("%+v", got)
	}
	want(t, "a key as path", w.ask("PUT", "/api/memory", "ann", `{"facts": [{"type": "a", "key": "../b", "value": "c"}]}`), 400, "invalid")
	want(t, "no facts", w.ask("PUT", "/api/memory", "ann", `{"facts": []}`), 400, "invalid")
	etag := func() string {
		var v struct{ Facts []struct{ ETag string } }
		w.ask("GET", "/api/memory", "ann-reads", nil).into(t, &v)
		return v.Facts[1].ETag
	}
	older := etag()
	outcome(`{"facts": [{"type": "preference", "key": "seat", "value": "Prefers the aisle", "explicit": true}]}`)
	want(t, "forget an older version", w.ask("DELETE", "/api/memory/preference/seat", "ann", nil, ifMatch(`"`+older+`"`)), 409, "conflict")
	want(t, "two etags", w.ask("DELETE", "/api/memory/preference/seat", "ann", nil, ifMatch(`"a", "b"`)), 400, "invalid")
	want(t, "forget the newest version", w.ask("DELETE", "/api/memory/preference/seat", "ann", nil, ifMatch(etag())), 200, "")
	want(t, "forget again", w.ask("DELETE", "/api/memory/preference/seat", "ann", nil), 404, "not_found")
	if got := list(); len(got) != 2 {
		t.Errorf("%+v", got)
	}
}
