package store_test

import (
	"slices"
	"testing"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func TestAuditOf(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		bob, _ := w.user("bob", false)
		if err := w.AddMember(t.Context(), cli, annSpace.ID, bob.ID, space.Reader); err != nil {
			t.Fatal(err)
		}
		w.key(bob, annSpace, "read")
		if err := w.SetAdmin(t.Context(), store.Actor{User: bob.ID, Via: "web"}, ann.ID, true); err != nil { // changes nothing
			t.Fatal(err)
		}
		if err := w.Record(t.Context(), store.Actor{User: bob.ID, Via: "web"}, "space.purge", string(annSpace.ID), nil); err != nil {
			t.Fatal(err)
		}
		for name, tt := range map[string]struct {
			f    store.AuditFilter
			want []string
		}{
			"all":                 {store.AuditFilter{}, []string{"space.purge", "key.create", "member.set", "space.create", "user.create", "space.create", "user.create"}},
			"of and about one":    {store.AuditFilter{Users: []space.UserID{bob.ID}}, []string{"space.purge", "key.create", "member.set", "space.create", "user.create"}},
			"of two":              {store.AuditFilter{Users: []space.UserID{ann.ID, bob.ID}, Act: "user."}, []string{"user.create", "user.create"}},
			"an act of one":       {store.AuditFilter{Users: []space.UserID{bob.ID}, Act: "user."}, []string{"user.create"}},
			"one act":             {store.AuditFilter{Act: "key.create"}, []string{"key.create"}},
			"the middle of acts":  {store.AuditFilter{Act: "create"}, nil},
			"somebody else's id":  {store.AuditFilter{Users: []space.UserID{"u_x"}}, nil},
			"Attack: a quotation": {store.AuditFilter{Users: []space.UserID{`u' OR '1'='1`}}, nil},
		} {
			entries, err := w.AuditOf(t.Context(), tt.f, 0, 100)
			var got []string
			for _, e := range entries {
				got = append(got, e.Action)
			}
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%s: %v, %v; want %v", name, got, err, tt.want)
			}
		}
		for _, act := range []string{"%", "user_", "User", "user.create'"} {
			_, err := w.AuditOf(t.Context(), store.AuditFilter{Act: act}, 0, 1)
			wantCode(t, act, err, fault.Invalid)
		}
		page, err := w.AuditOf(t.Context(), store.AuditFilter{Act: "user."}, 0, 1)
		if err != nil || len(page) != 1 {
			t.Fatal(page, err)
		}
		page, err = w.AuditOf(t.Context(), store.AuditFilter{Act: "user."}, page[0].ID, 10)
		if err != nil || len(page) != 1 || page[0].Subject != string(ann.ID) {
			t.Errorf("the next page: %+v, %v", page, err)
		}
	})
}

func TestNamesOf(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		gil, gilSpace := w.user("gil", false)
		if err := w.CreateClient(t.Context(), cli, auth.Client{ID: "client-1", Name: "Desk"}); err != nil {
			t.Fatal(err)
		}
		named, _, err := w.CreateKey(t.Context(), cli, store.NewKey{User: ann.ID, Space: annSpace.ID, Scopes: []space.Scope{space.ScopeRead}, Name: "laptop"})
		if err != nil {
			t.Fatal(err)
		}
		nameless, _, err := w.CreateKey(t.Context(), cli, store.NewKey{User: ann.ID, Space: annSpace.ID, Scopes: []space.Scope{space.ScopeRead}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.RemoveUser(t.Context(), cli, gil.ID); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			string(ann.ID): "ann", string(gil.ID): "gil (removed)", string(annSpace.ID): "ann/ann", string(gilSpace.ID): "gil",
			"client-1": "Desk", string(named.ID): "laptop", string(nameless.ID): "", "u_x": "",
		}
		var ids []string
		for id := range want {
			ids = append(ids, id)
		}
		got, err := w.NamesOf(t.Context(), ids)
		if err != nil {
			t.Fatal(err)
		}
		for id, name := range want {
			if got[id] != name {
				t.Errorf("%s is called %q, want %q", id, got[id], name)
			}
		}
		if none, err := w.NamesOf(t.Context(), nil); err != nil || len(none) != 0 {
			t.Errorf("nothing: %v, %v", none, err)
		}
	})
}
