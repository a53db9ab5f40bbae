package server

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/internal/database"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// page is an open page's stream of what happens in a space.
type page struct {
	r     *running
	lines *bufio.Scanner
	ended chan struct{} // once until reached the end
}

// watch signs somebody in and opens a page.
func (r *running) watch(u store.User, id space.SpaceID) (p *page, session string) {
	r.t.Helper()
	secret, s, err := r.Accounts.StartSession(r.t.Context(), store.NewSession{User: u.ID, Method: "link"})
	if err != nil {
		r.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.issuer+"/spaces/"+string(id)+"/events", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.AddCookie(&http.Cookie{Name: "satchel", Value: secret.Reveal()})
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		r.t.Fatalf("the page: status %d", res.StatusCode)
	}
	return &page{r: r, lines: bufio.NewScanner(res.Body), ended: make(chan struct{})}, s.ID
}

// until reports whether the page is told of a commit.
func (p *page) until(c space.Commit) bool {
	for p.lines.Scan() {
		if p.lines.Text() == "id: "+string(c.ID) {
			return true
		}
	}
	close(p.ended)
	return false
}

func (r *running) commit(id space.SpaceID, path string) space.Commit {
	r.t.Helper()
	c, err := r.Git.Commit(r.t.Context(), id, space.ChangeSet{Changes: []space.Change{{Path: path, Content: []byte("x")}}}, space.Meta{})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// What is open of a session ends with it, whoever ends it, and nothing else does; and
// who is made a reader loses what could write, and nothing that only reads.
func TestAttackPagesOutliveTheirSession(t *testing.T) {
	cfg := settings(t)
	r := boot(t, cfg)
	ctx := t.Context()
	db, err := database.Open(ctx, database.Options{URL: cfg.DatabaseURL()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	elsewhere := store.New(db, store.Options{TokenKey: make([]byte, 32)})
	defer elsewhere.Close()
	by := store.Actor{Via: "elsewhere"}
	ann, err := r.Accounts.FindUser(ctx, "ann")
	if err != nil {
		t.Fatal(err)
	}
	team, err := r.Accounts.FindSpace(ctx, ann.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	addUser(t, r.Service, "guest", false)
	guest, err := r.Accounts.FindUser(ctx, "guest")
	if err != nil {
		t.Fatal(err)
	}
	share := func(role space.Role) {
		t.Helper()
		if _, err := r.Service.SetMember(ctx, service.Operator(), service.SetMemberInput{Member: service.UserRef{Name: "guest"}, Role: role}); err != nil {
			t.Fatal(err)
		}
	}
	share(space.Reader)
	for name, end := range map[string]func(session string) error{
		"signed out by the command": func(string) error {
			_, err := r.Service.EndSessions(ctx, service.Operator(), service.EndSessionsInput{User: "guest"})
			return err
		},
		"ended elsewhere": func(s string) error { return elsewhere.EndSession(ctx, by, guest.ID, s) },
	} {
		bystander, _ := r.watch(ann, team.ID)
		open, session := r.watch(guest, team.ID)
		if err := end(session); err != nil {
			t.Fatal(err)
		}
		// Nothing is committed, by which the stream would look whether it still may.
		go open.until(space.Commit{ID: "none"})
		testenv.Receive(t, name, open.ended)
		if c := r.commit(team.ID, strings.ReplaceAll(name, " ", "-")); !bystander.until(c) {
			t.Errorf("%s: somebody else's page was ended too", name)
		}
	}

	t.Run("who is made a reader", func(t *testing.T) {
		share(space.Editor)
		key := func(scopes ...space.Scope) chan struct{} {
			_, key, err := r.Accounts.CreateKey(ctx, by, store.NewKey{User: guest.ID, Space: team.ID, Scopes: scopes})
			if err != nil {
				t.Fatal(err)
			}
			return r.listening(key.Reveal())
		}
		reads, writes := key(space.ScopeRead), key(space.ScopeRead, space.ScopeWrite)
		open, _ := r.watch(guest, team.ID)
		share(space.Reader)
		testenv.Receive(t, "what could write", writes)
		if !open.until(r.commit(team.ID, "after.md")) {
			t.Error("the page of who may read was ended")
		}
		select {
		case <-reads:
			t.Error("the client that may only read was ended")
		default:
		}
	})
	t.Run("who is made a reader again", func(t *testing.T) {
		// Nobody who is a reader has anything that writes; this stands for all that a
		// repeated command would end.
		e := store.Entry{Action: "member.set", Subject: string(team.ID)}
		share(space.Editor)
		_, key, err := r.Accounts.CreateKey(ctx, by, store.NewKey{User: guest.ID, Space: team.ID, Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}})
		if err != nil {
			t.Fatal(err)
		}
		writes := r.listening(key.Reveal())
		e.Detail = `{"user":"` + string(guest.ID) + `","role":"reader","was":"reader"}`
		r.actOn(ctx, e)
		e.Detail = `{"user":"` + string(guest.ID) + `","role":"editor","was":"reader"}`
		r.actOn(ctx, e)
		if n := len(r.mcp.InProgress()); n == 0 {
			t.Error("what writes was ended")
		}
		e.Detail = `{"user":"` + string(guest.ID) + `","role":"reader"}` // as older servers noted it
		r.actOn(ctx, e)
		testenv.Receive(t, "what writes", writes)
	})
	r.end()
}
