package store_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
)

func TestClients(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		want := auth.Client{ID: "client-1", Kind: auth.ClientRegistered, Name: "Cursor", URI: "https://cursor.com", RedirectURIs: []string{redirect, "cursor://anysphere.cursor/cb?a=b&c=\"'"}}
		if err := w.RegisterClient(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		want.Created = w.clock().Truncate(time.Millisecond)
		got, err := w.Client(t.Context(), "client-1")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Client: got %+v, %v\nwant %+v", got, err, want)
		}
		wantCode(t, "an id that is taken", w.RegisterClient(t.Context(), want), fault.Conflict)
		_, err = w.Client(t.Context(), "CLIENT-1")
		wantCode(t, "an id in other case", err, fault.NotFound)

		w.pass(time.Second)
		if err := w.CreateClient(t.Context(), cli, auth.Client{ID: "preset", Kind: auth.ClientRegistered, Name: "Ours"}); err != nil {
			t.Fatal(err)
		}
		list, err := w.Clients(t.Context())
		if err != nil || len(list) != 2 || list[0].ID != "preset" || list[0].Kind != auth.ClientPreset || len(list[0].RedirectURIs) != 0 || list[1].ID != "client-1" {
			t.Errorf("Clients: %+v, %v", list, err)
		}

		ann, sp := w.user("ann", true)
		w.connect(ann, sp)
		if got, _ := w.Client(t.Context(), "client-1"); !got.LastUsed.Equal(got.Created) {
			t.Errorf("used in the hour in which it was made, %v: last used %v", got.Created, got.LastUsed)
		}
		w.pass(90 * time.Minute)
		tok := w.connect(ann, sp)
		if got, _ := w.Client(t.Context(), "client-1"); !got.LastUsed.Equal(w.clock().Truncate(time.Hour)) {
			t.Errorf("last used %v, want the hour of %v", got.LastUsed, w.clock())
		}
		w.pass(3 * time.Hour)
		w.refresh(renewal(tok.Refresh))
		if got, _ := w.Client(t.Context(), "client-1"); !got.LastUsed.Equal(w.clock().Truncate(time.Hour)) {
			t.Errorf("after a refresh: last used %v", got.LastUsed)
		}

		if err := w.DeleteClient(t.Context(), cli, "client-1"); err != nil {
			t.Fatal(err)
		}
		if w.works(tok) {
			t.Error("a grant outlives its client")
		}
		wantCode(t, "deleted again", w.DeleteClient(t.Context(), cli, "client-1"), fault.NotFound)
		// The store has only grants of a client with a metadata document.
		c := consent(ann, sp)
		c.Client = "https://claude.ai/oauth/mcp-oauth-client-metadata"
		r := redemption(w.code(c))
		r.Client = c.Client
		if tok, err = w.Redeem(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if err := w.DeleteClient(t.Context(), cli, c.Client); err != nil || w.works(tok) {
			t.Errorf("a client with a document: %v; its grant is good: %v", err, w.works(tok))
		}
		if w.audited("client.register") != 1 || w.audited("client.create") != 1 || w.audited("client.delete") != 2 {
			t.Errorf("the audit log has %s", w.actions())
		}
	})
}

// Attack: somebody registers clients without end, or clients with endless descriptions.
func TestRegistrationIsBounded(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		s := w.with(store.Options{MaxClients: 5})
		register := func(id string) error {
			return s.RegisterClient(t.Context(), auth.Client{ID: id, RedirectURIs: []string{redirect}})
		}
		for i := range 5 {
			if err := register(fmt.Sprint("c", i)); err != nil {
				t.Fatal(err)
			}
		}
		err := register("c5")
		wantCode(t, "one too many", err, fault.Limited)
		if err := s.CreateClient(t.Context(), cli, auth.Client{ID: "preset"}); err != nil {
			t.Errorf("an admin's client: %v", err)
		}
		// Attack: unused registrations take all places. After a minute, a new client
		// replaces the oldest of them, but never a client in use.
		ann, annSpace := w.user("ann", true)
		used := consent(ann, annSpace)
		used.Client = "c0"
		if _, err := s.CreateCode(t.Context(), used); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute + time.Second)
		if err := register("late"); err != nil {
			t.Errorf("a minute later: %v", err)
		}
		_, err = s.Client(t.Context(), "c1")
		wantCode(t, "the oldest that nobody used", err, fault.NotFound)
		for _, id := range []string{"c0", "c2", "late"} {
			if _, err := s.Client(t.Context(), id); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		// Unused clients make room without a sweep.
		w.pass(store.DefaultUnusedClient)
		if err := register("c5"); err != nil {
			t.Errorf("a day later: %v", err)
		}
		if n := w.count("auth_clients"); n != 2 {
			t.Errorf("%d clients are left, want the new one and the preset one", n)
		}
		long := strings.Repeat("x", 2049)
		many := make([]string, 33)
		wide := make([]string, 20)
		for i := range wide {
			wide[i] = strings.Repeat("x", 2000)
		}
		for name, c := range map[string]auth.Client{
			"no id":                   {},
			"a long id":               {ID: long},
			"a long redirect URI":     {ID: "x", RedirectURIs: []string{long}},
			"many redirect URIs":      {ID: "x", RedirectURIs: many},
			"many long redirect URIs": {ID: "x", RedirectURIs: wide},
			"a long URI":              {ID: "x", URI: strings.Repeat("x", 20_000)},
		} {
			wantCode(t, name, s.RegisterClient(t.Context(), c), fault.Invalid)
		}
		if err := s.RegisterClient(t.Context(), auth.Client{ID: "loud", Name: "\u202eevil\x00" + strings.Repeat("x", 100_000)}); err != nil {
			t.Fatal(err)
		}
		if c, err := s.Client(t.Context(), "loud"); err != nil || len(c.Name) > 200 || !strings.HasPrefix(c.Name, "evilx") {
			t.Errorf("it is called %.20q, %v", c.Name, err)
		}
		entries, _ := w.Audit(t.Context(), 0, 1000)
		for _, e := range entries {
			if len(e.Subject)+len(e.Detail) > 400 {
				t.Errorf("%s has %d bytes of detail", e.Action, len(e.Detail))
			}
		}
	})
}
