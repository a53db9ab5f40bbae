package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/internal/database"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// listening opens a stream with a token, and returns what tells of its end.
func (r *running) listening(token string) chan struct{} {
	r.t.Helper()
	do := func(method, session, body string) *http.Response {
		req, err := http.NewRequestWithContext(r.t.Context(), method, r.URL(), strings.NewReader(body))
		if err != nil {
			r.t.Fatal(err)
		}
		for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + token, "Mcp-Session-Id": session} {
			if v != "" {
				req.Header.Set(k, v)
			}
		}
		if method == http.MethodGet {
			req.Header.Set("Accept", "text/event-stream")
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			r.t.Fatal(err)
		}
		return res
	}
	hello := do(http.MethodPost, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	hello.Body.Close()
	stream := do(http.MethodGet, hello.Header.Get("Mcp-Session-Id"), "")
	if stream.StatusCode != http.StatusOK {
		r.t.Fatalf("listen: status %d", stream.StatusCode)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer stream.Body.Close()
		_, _ = io.Copy(io.Discard, stream.Body)
	}()
	return ended
}

// A removal is seen, however much was done since the last look.
func TestNoActIsMissed(t *testing.T) {
	r := boot(t, settings(t))
	ctx := t.Context()
	handled := map[int64]bool{}
	if _, err := r.acts(ctx, handled, nil); err != nil {
		t.Fatal(err)
	}
	by := store.Actor{Via: "test"}
	if err := r.Accounts.Record(ctx, by, "user.remove", "u_somebody", nil); err != nil {
		t.Fatal(err)
	}
	for range readBack + 1 {
		if err := r.Accounts.Record(ctx, by, "other", "", nil); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	for range 2 {
		if _, err := r.acts(ctx, handled, func(_ context.Context, e store.Entry) bool {
			if e.Action == "user.remove" {
				seen++
			}
			return false
		}); err != nil {
			t.Fatal(err)
		}
	}
	if seen != 1 {
		t.Errorf("it was seen %d times", seen)
	}
}

// Removing a person, taking them out of a space and revoking a grant end what is
// open, whoever did it: this process, or another on the same database.
func TestRightsThatAreTakenEndWhatIsOpen(t *testing.T) {
	cfg := settings(t)
	r := boot(t, cfg)
	ctx := t.Context()
	// What another process on the database does, this one learns from the audit
	// log alone.
	db, err := database.Open(ctx, database.Options{URL: cfg.DatabaseURL()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	elsewhere := store.New(db, store.Options{TokenKey: make([]byte, 32)})
	defer elsewhere.Close()
	by := store.Actor{Via: "elsewhere"}
	shared, err := r.Accounts.FindUser(ctx, "ann")
	if err != nil {
		t.Fatal(err)
	}
	team, err := r.Accounts.FindSpace(ctx, shared.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	bystander := r.listening(r.granted("ann", r.resource()).Access.Reveal())
	for name, end := range map[string]func(user string, u store.User, g space.GrantID) error{
		"removed here": func(user string, _ store.User, _ space.GrantID) error {
			removeUser(t, r.Service, user)
			return nil
		},
		"revoked here": func(_ string, _ store.User, g space.GrantID) error {
			_, err := r.Service.RevokeGrant(ctx, service.Operator(), service.RevokeGrantInput{ID: g})
			return err
		},
		"removed elsewhere": func(_ string, u store.User, _ space.GrantID) error { return elsewhere.RemoveUser(ctx, by, u.ID) },
		"revoked elsewhere": func(_ string, _ store.User, g space.GrantID) error { return elsewhere.RevokeGrant(ctx, by, g, "") },
	} {
		t.Run(name, func(t *testing.T) {
			user := strings.ReplaceAll(name, " ", "-")
			addUser(t, r.Service, user, false)
			u, err := r.Accounts.FindUser(ctx, user)
			if err != nil {
				t.Fatal(err)
			}
			tokens := r.granted(user, r.resource())
			open := r.listening(tokens.Access.Reveal())
			if err := end(user, u, tokens.Grant); err != nil {
				t.Fatal(err)
			}
			if status, _ := r.bearing(tokens.Access.Reveal(), ""); status != http.StatusUnauthorized {
				t.Errorf("the next request: status %d", status)
			}
			testenv.Receive(t, "the stream", open)
		})
	}
	t.Run("made a reader", func(t *testing.T) {
		addUser(t, r.Service, "once-editor", false)
		if _, err := r.Service.SetMember(ctx, service.Operator(), service.SetMemberInput{Member: service.UserRef{Name: "once-editor"}, Role: space.Editor}); err != nil {
			t.Fatal(err)
		}
		u, err := r.Accounts.FindUser(ctx, "once-editor")
		if err != nil {
			t.Fatal(err)
		}
		_, key, err := r.Accounts.CreateKey(ctx, by, store.NewKey{User: u.ID, Space: team.ID, Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}})
		if err != nil {
			t.Fatal(err)
		}
		open := r.listening(key.Reveal())
		if err := elsewhere.AddMember(ctx, by, team.ID, u.ID, space.Reader); err != nil {
			t.Fatal(err)
		}
		testenv.Receive(t, "what an editor had begun", open)
	})
	t.Run("taken out of a space", func(t *testing.T) {
		addUser(t, r.Service, "guest", false)
		as := service.SetMemberInput{Member: service.UserRef{Name: "guest"}, Role: space.Editor}
		if _, err := r.Service.SetMember(ctx, service.Operator(), as); err != nil {
			t.Fatal(err)
		}
		guest, err := r.Accounts.FindUser(ctx, "guest")
		if err != nil {
			t.Fatal(err)
		}
		_, key, err := r.Accounts.CreateKey(ctx, by, store.NewKey{User: guest.ID, Space: team.ID, Scopes: []space.Scope{space.ScopeRead}})
		if err != nil {
			t.Fatal(err)
		}
		open := r.listening(key.Reveal())
		if err := elsewhere.RemoveMember(ctx, by, team.ID, guest.ID); err != nil {
			t.Fatal(err)
		}
		testenv.Receive(t, "the stream", open)
	})
	select {
	case <-bystander:
		t.Error("somebody else's stream was ended too")
	default:
	}
	r.end()
	<-bystander
}
