package remotes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gorm.io/gorm"

	"satchel/gitstore/remotes"
	"satchel/gitstore/transport"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Set accepts some remotes, and explains why it rejects the others.
func TestSetChecks(t *testing.T) {
	b := newBench(t, nil)
	ssh := newBench(t, func(o *remotes.Options) { o.SSH = &transport.SSH{KeyFile: "/none"} })
	for _, c := range []struct {
		name string
		req  remotes.SetRequest
		ssh  bool
		says string // empty: the request is accepted
	}{
		{"https", remotes.SetRequest{URL: "https://git.example/a/b.git"}, false, ""},
		{"with blanks around it", remotes.SetRequest{URL: " \thttps://git.example/a/b \n", Branch: " main "}, false, ""},
		{"at GitHub", remotes.SetRequest{URL: "https://github.com/ann/notes", Secret: "t"}, false, ""},
		{"a directory of the operator's", remotes.SetRequest{URL: "/srv/notes.git", Trusted: true}, false, ""},
		{"nothing", remotes.SetRequest{}, false, "empty"},
		{"Attack: a file", remotes.SetRequest{URL: "file:///srv/notes.git"}, false, "https"},
		{"Attack: a directory", remotes.SetRequest{URL: "/srv/notes.git"}, false, "https"},
		{"Attack: a program", remotes.SetRequest{URL: "ext::sh"}, false, "helper::"},
		{"Attack: an option", remotes.SetRequest{URL: "--upload-pack=id"}, false, "-"},
		{"Attack: this machine", remotes.SetRequest{URL: "https://127.0.0.1/a"}, false, "127.0.0.1"},
		{"Attack: a URL that is a novel", remotes.SetRequest{URL: "https://git.example/" + strings.Repeat("a", 3000)}, false, "bytes"},
		{"a token in the URL", remotes.SetRequest{URL: "https://x-access-token:CANARY@github.com/ann/notes"}, false, "Leave that part out"},
		{"a user in the URL", remotes.SetRequest{URL: "https://CANARY@github.com/ann/notes"}, false, "Leave that part out"},
		{"a token in an invalid URL", remotes.SetRequest{URL: "https://u:CANARY%zz@github.com/ann/notes"}, false, "Leave that part out"},
		{"a token in an ssh URL", remotes.SetRequest{URL: "ssh://git:CANARY@github.com/ann/notes", Trusted: true}, true, "Leave that part out"},
		{"the form for ssh", remotes.SetRequest{URL: "git@github.com:ann/notes.git"}, false, "https://github.com/ann/notes.git"},
		{"ssh without the knob", remotes.SetRequest{URL: "ssh://git@github.com/ann/notes.git"}, false, "does not use SSH"},
		{"Attack: ssh with the operator's key by a user", remotes.SetRequest{URL: "ssh://git@github.com/ann/notes.git"}, true, "the people who run this server"},
		{"ssh", remotes.SetRequest{URL: "ssh://git@github.com/ann/notes.git", Trusted: true}, true, ""},
		{"ssh with a token", remotes.SetRequest{URL: "ssh://git@github.com/ann/notes.git", Trusted: true, Secret: "t"}, true, "with the kind token"},
		{"a page of a repository", remotes.SetRequest{URL: "https://github.com/ann/notes/tree/main/docs"}, false, "https://github.com/ann/notes."},
		{"a person's page", remotes.SetRequest{URL: "https://github.com/ann"}, false, "OWNER/NAME"},
		{"an invalid branch", remotes.SetRequest{URL: "https://git.example/a", Branch: "-f"}, false, "branch"},
		{"an invalid kind", remotes.SetRequest{URL: "https://git.example/a", Kind: "svn"}, false, "not a kind"},
		{"GitHub without an app", remotes.SetRequest{URL: "https://github.com/ann/notes", Kind: space.KindGitHub}, false, "no GitHub App"},
		{"the kind token without one", remotes.SetRequest{URL: "https://git.example/new", Kind: space.KindToken}, false, "token is missing"},
		{"a token with another kind", remotes.SetRequest{URL: "https://git.example/a", Kind: space.KindNone, Secret: "CANARY"}, false, "with the kind token"},
		{"Attack: a token with a line end", remotes.SetRequest{URL: "https://git.example/a", Secret: "CANARY\r\nX-Evil: 1"}, false, "line end"},
		{"Attack: another space's name", remotes.SetRequest{Space: "../x", URL: "https://git.example/a"}, false, "space id"},
		{"an unknown space", remotes.SetRequest{Space: space.NewSpaceID(), URL: "https://git.example/a"}, false, "no such space"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := b
			if c.ssh {
				b = ssh
			}
			if c.req.Space == "" {
				c.req.Space = b.git.add()
			}
			before := b.Check(t.Context(), c.req)
			if b.Has(c.req.Space) {
				t.Error("a check sets it")
			}
			err := b.Set(t.Context(), c.req)
			switch {
			case (before == nil) != (err == nil) || fault.PublicOf(before) != fault.PublicOf(err):
				t.Errorf("a check says %v, and to set it %v", before, err)
			case c.says == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.says != "" && (err == nil || !strings.Contains(fault.PublicOf(err), c.says)):
				t.Errorf("says %v, want %q", err, c.says)
			case err != nil && strings.Contains(err.Error(), "CANARY"):
				t.Errorf("repeats the secret: %v", err)
			case err != nil && b.Has(c.req.Space):
				t.Error("it is set all the same")
			case err == nil && !b.Has(c.req.Space):
				t.Error("it is not set")
			}
			if err := b.Remove(context.WithoutCancel(t.Context()), c.req.Space); err != nil {
				t.Error(err)
			}
		})
	}
}

// endpoints records the endpoints of transfers.
func (f *fake) endpoints(to *[]transport.Endpoint) {
	f.set(func() {
		f.hook = func(_ context.Context, op string, _ space.SpaceID, e transport.Endpoint) error {
			if op == "list" {
				*to = append(*to, e)
			}
			return nil
		}
	})
}

// A token is sealed in the table and only reaches the transfers. It stays for the same URL, and
// never goes to another URL.
func TestToken(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		b := benchOn(t, db, nil)
		id := b.git.add()
		var seen []transport.Endpoint
		b.git.endpoints(&seen)
		set := func(req remotes.SetRequest) error {
			req.Space = id
			if err := b.Set(t.Context(), req); err != nil {
				return err
			}
			_, err := b.Sync(t.Context(), id, nil)
			return err
		}
		own := "https://git.example/" + string(id)
		if err := set(remotes.SetRequest{URL: own, Username: "ann", Secret: " CANARY\n"}); err != nil {
			t.Fatal(err)
		}
		last := func() space.Credential { return seen[len(seen)-1].Credential }
		if c := last(); c.Secret != "CANARY" || c.Username != "ann" {
			t.Errorf("%+v", c)
		}
		// The next process also gets the token.
		b.close()
		b.open()
		b.start()
		if err := set(remotes.SetRequest{URL: own}); err != nil {
			t.Fatal(err)
		}
		if c := last(); c.Secret != "CANARY" || c.Username != "ann" {
			t.Errorf("without a new token: %+v", c)
		}
		if err := set(remotes.SetRequest{URL: own, Branch: "other"}); err != nil || last().Secret != "CANARY" {
			t.Errorf("for another branch: %+v %v", last(), err)
		}
		// Attack: a member sets the URL of their own server to get the token.
		if err := set(remotes.SetRequest{URL: "https://evil.example/" + string(id), Kind: space.KindToken}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("the token follows to another URL: %v", err)
		}
		// Attack: the row of one space is copied to another space.
		other := b.git.add()
		err := db.Transact(t.Context(), func(tx *gorm.DB) error {
			return tx.Exec(`INSERT INTO remotes SELECT ?, ?, branch, chosen, trusted, kind, username, secret, created, changed FROM remotes WHERE space_id = ?`,
				string(other), "https://git.example/"+string(other), string(id)).Error
		})
		if err != nil {
			t.Fatal(err)
		}
		b.close()
		b.open()
		b.start()
		n := len(seen)
		if st, err := b.Sync(t.Context(), other, nil); err != nil || st.Problem != remotes.NoToken || len(seen) != n {
			t.Errorf("%+v %v", st, err)
		}
		// Neither the tables nor the answers contain the token.
		var rows []map[string]any
		for _, table := range []string{"remotes", "remotes_synced", "remotes_notices"} {
			var some []map[string]any
			if err := db.Read(t.Context()).Table(table).Find(&some).Error; err != nil {
				t.Fatal(err)
			}
			rows = append(rows, some...)
		}
		if s := fmt.Sprintf("%s %+v %+v", rows, b.status(id), b.status(other)); strings.Contains(s, "CANARY") {
			t.Errorf("the token is in %s", s)
		}
		if err := set(remotes.SetRequest{URL: own, Kind: space.KindNone}); err != nil || last() != (space.Credential{}) {
			t.Errorf("%v %+v", err, last())
		}
	})
}

// Another URL or branch is another remote, so the state of the old one is forgotten.
func TestSwitchingRemotes(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start()
		id := b.remote()
		synctest.Wait()
		if b.git.state(id).tracked != 1 {
			t.Fatal("nothing is tracked")
		}
		req := remotes.SetRequest{Space: id, URL: b.status(id).Remote.URL}
		for _, change := range []struct {
			name    string
			do      func()
			another bool
		}{
			{"nothing", func() {}, false},
			{"the user name", func() { req.Username = "ann" }, false},
			{"the branch that it is, by name", func() { req.Branch = "main" }, false},
			{"the branch", func() { req.Branch = "other" }, true},
			{"no branch any more", func() { req.Branch = "" }, true},
		} {
			b.git.failing(func() error { return remoteError(transport.Network) })
			b.git.set(func() { b.git.spaces[id].tracked = 1 })
			change.do()
			if err := b.Set(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if forgotten := b.git.state(id).tracked == 0; forgotten != change.another {
				t.Errorf("%s: what was tracked is forgotten: %v", change.name, forgotten)
			}
			b.git.failing(nil)
			if st, err := b.Sync(t.Context(), id, nil); err != nil || st.State != space.RemotePushed {
				t.Errorf("%s: %+v %v", change.name, st, err)
			}
		}
	})
}

// credentials replaces a GitHub App.
type credentials func(space.Repository) (space.Credential, error)

func (c credentials) Credential(_ context.Context, r space.Repository) (space.Credential, error) {
	return c(r)
}

// An App's token is renewed before it expires, and once if it is refused. Withdrawn access
// is distinguished from a failing service.
func TestAppToken(t *testing.T) {
	inTime(t, func(t *testing.T) {
		asked := 0
		life := time.Hour
		var refusal error
		b := newBench(t, func(o *remotes.Options) {
			o.Credentials = credentials(func(r space.Repository) (space.Credential, error) {
				asked++
				if !strings.HasSuffix(r.URL, string(r.Space)) {
					t.Errorf("asked for %+v", r)
				}
				return space.Credential{Secret: fmt.Sprint("token", asked), Expires: time.Now().Add(life)}, refusal
			})
		})
		b.start()
		id := b.git.add()
		err := b.Set(t.Context(), remotes.SetRequest{Space: id, URL: "https://evil.example/ann/notes", Kind: space.KindGitHub})
		if fault.CodeOf(err) != fault.Invalid || asked != 0 {
			t.Errorf("Attack: another host is sent the app's token: %v", err)
		}
		refuse := ""
		b.git.set(func() {
			b.git.hook = func(_ context.Context, op string, _ space.SpaceID, e transport.Endpoint) error {
				if op == "integrate" {
					return nil
				}
				if e.Credential.Secret != fmt.Sprint("token", asked) {
					t.Errorf("%s has %q, of %d", op, e.Credential.Secret, asked)
				}
				if strings.Contains(refuse, e.Credential.Secret+" ") {
					return &transport.Error{Problem: transport.Auth, Op: op}
				}
				return nil
			}
		})
		if err := b.Set(t.Context(), remotes.SetRequest{Space: id, URL: "https://git.example/" + string(id), Kind: space.KindGitHub, Trusted: true}); err != nil {
			t.Fatal(err)
		}
		sync := func(name string, calls int, want remotes.Problem) {
			t.Helper()
			before := asked
			st, err := b.Sync(t.Context(), id, nil)
			if err != nil || st.Problem != want || asked-before != calls {
				t.Errorf("%s: %v %s, asked %d times", name, err, st.Problem, asked-before)
			}
		}
		synctest.Wait()
		b.Publish(b.git.commit(id))
		synctest.Wait()
		sync("a token for one sync", 1, "")
		life = 4 * time.Minute
		b.git.commit(id)
		sync("a token that expires soon is asked for before every transfer", 2, "")
		life = time.Hour
		refuse = fmt.Sprintf("token%d ", asked+1)
		sync("a refused token is asked for again", 2, "")
		refuse = fmt.Sprintf("token%d token%d ", asked+1, asked+2)
		sync("one that is refused again is told", 2, transport.Auth)
		refusal = fault.New(fault.Unavailable, "The app was suspended.")
		sync("access withdrawn", 1, remotes.NoAccess)
		refusal = &fault.Error{Code: fault.Unavailable, RetryAfter: time.Minute}
		sync("asked to wait", 1, transport.RateLimited)
		refusal = fmt.Errorf("connection refused")
		sync("no answer", 1, transport.Server)
		refusal = nil
		sync("well again", 1, "")
	})
}

// A Status and notices contain nothing of another space's remote.
func TestSpacesAreApart(t *testing.T) {
	b := newBench(t, nil)
	ann, bob := b.git.add(), b.git.add()
	b.git.set(func() {
		b.git.hook = func(_ context.Context, _ string, id space.SpaceID, _ transport.Endpoint) error {
			if id != ann {
				return nil
			}
			e := remoteError(transport.Secret)
			e.Host, e.Paths = "annshost.example", []space.RemoteLocation{{Path: "annspath"}}
			return e
		}
	})
	for _, id := range []space.SpaceID{ann, bob} {
		if err := b.Set(t.Context(), remotes.SetRequest{Space: id, URL: "https://git.example/" + string(id), Username: "user-" + string(id), Secret: "s"}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Sync(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	third := b.git.add()
	all := func(id space.SpaceID) string {
		st := b.status(id)
		return fmt.Sprintf("%+v %+v %q %q", st, st.Remote, b.Notices(id, "u_x"), b.Trouble(id))
	}
	if s := all(ann); !strings.Contains(s, "annspath") || !strings.Contains(s, string(ann)) {
		t.Errorf("the test would prove nothing: %s", s)
	}
	for _, id := range []space.SpaceID{bob, third} {
		if s := all(id); strings.Contains(s, "ann") || strings.Contains(s, string(ann)) {
			t.Errorf("%s", s)
		}
	}
}

// An event removes a remote that was set before it. A remote that was set later stays.
func TestRemoveSetBefore(t *testing.T) {
	b := newBench(t, nil)
	id := b.git.add()
	for _, c := range []struct {
		name    string
		set     bool
		off     time.Duration // when the remote was set, relative to the event
		removed bool
	}{
		{"none", false, 0, false},
		{"set since", true, -time.Millisecond, false},
		{"set in that millisecond", false, 0, true},
		{"gone", false, time.Hour, false},
		{"set before", true, time.Hour, true},
	} {
		if c.set {
			if err := b.Set(t.Context(), remotes.SetRequest{Space: id, URL: "https://git.example/a"}); err != nil {
				t.Fatal(err)
			}
		}
		r, had, err := b.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		removed, err := b.RemoveSetBefore(t.Context(), id, r.Changed.Add(c.off))
		if err != nil || removed != c.removed || b.Has(id) != (had && !removed) {
			t.Errorf("%s: removed %v, left %v, %v", c.name, removed, b.Has(id), err)
		}
	}
}
