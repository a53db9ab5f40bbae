package sandbox

import (
	"slices"
	"strings"
	"testing"

	"satchel/internal/space"
)

func TestQueueServesUsersInTurn(t *testing.T) {
	for _, c := range []struct{ pushed, removed, want string }{
		{"", "", ""},
		{"a1 a2 a3", "", "a1 a2 a3"},
		{"a1 a2 a3 b1 c1", "", "a1 b1 c1 a2 a3"},
		{"a1 a2 b1 b2 a3", "", "a1 b1 a2 b2 a3"},
		{"a1 b1 c1", "b1", "a1 c1"},
		{"a1 a2 b1", "a1", "a2 b1"},
		{"a1 b1", "a1 b1", ""},
	} {
		q := newQueue()
		all := map[string]*startup{}
		for _, name := range strings.Fields(c.pushed) {
			s := &startup{key: key{space.UserID(name[:1]), space.SpaceID(name[1:])}}
			all[name] = s
			q.push(s)
		}
		for _, name := range strings.Fields(c.removed) {
			q.remove(all[name])
			q.remove(all[name]) // a second time is nothing
		}
		if want := len(strings.Fields(c.want)); q.len() != want {
			t.Errorf("%q: %d wait, want %d", c.pushed, q.len(), want)
		}
		var got []string
		for s := q.pop(); s != nil; s = q.pop() {
			got = append(got, string(s.key.user)+string(s.key.space))
		}
		if want := strings.Fields(c.want); !slices.Equal(got, want) {
			t.Errorf("%q without %q: %q, want %q", c.pushed, c.removed, got, want)
		}
		if q.len() != 0 || len(q.turn) != 0 || len(q.byUser) != 0 {
			t.Errorf("%q: something is left: %+v", c.pushed, q)
		}
	}
}
