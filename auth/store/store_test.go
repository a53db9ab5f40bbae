package store_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/auth/store"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var cli = store.Actor{Via: "command line"}

// world is a store on one database, with a clock that only the test moves.
type world struct {
	*store.Store
	t  *testing.T
	db *database.DB

	mu  sync.Mutex
	now time.Time
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func newWorld(t *testing.T, db *database.DB) *world {
	t.Helper()
	if _, err := db.Migrate(t.Context(), store.Migrations()...); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: db, now: time.Date(2026, 11, 20, 12, 0, 30, 0, time.UTC)}
	w.Store = store.New(db, store.Options{Now: w.clock, Flush: time.Hour, TokenKey: []byte(tokenKey), Seal: newBox(t)})
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

const (
	day      = 24 * time.Hour
	tokenKey = "an example of a key of 32 bytes."
)

// each runs fn with every kind of database.
func each(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Helper()
	databasetest.Each(t, func(t *testing.T, db *database.DB) { fn(t, newWorld(t, db)) })
}

func (w *world) user(name string, admin bool) (store.User, store.Space) {
	w.t.Helper()
	u, sp, err := w.CreateUser(w.t.Context(), cli, store.NewUser{Name: name, Admin: admin})
	if err != nil {
		w.t.Fatal(err)
	}
	return u, sp
}

func wantCode(t *testing.T, what string, err error, want fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != want {
		t.Errorf("%s: got %v, want %q", what, err, want)
	}
}

// actions returns the actions of the audit log, oldest first.
func (w *world) actions() string {
	w.t.Helper()
	entries, err := w.Audit(w.t.Context(), 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for i := len(entries) - 1; i >= 0; i-- {
		out = append(out, entries[i].Action)
	}
	return strings.Join(out, " ")
}

// holdUsers locks auth_users on PostgreSQL until release is called and n transactions wait
// for the lock, so that all of them continue at the same moment. It does nothing on SQLite.
func (w *world) holdUsers(n int) (release func()) {
	if w.db.Kind() != database.Postgres {
		return func() {}
	}
	tx := w.db.Read(w.t.Context()).Begin()
	if err := tx.Exec("LOCK TABLE auth_users IN ACCESS EXCLUSIVE MODE").Error; err != nil {
		w.t.Fatal(err)
	}
	return func() {
		defer tx.Rollback()
		for waiting := 0; waiting < n; {
			if err := tx.Raw("SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND relation = 'auth_users'::regclass").Scan(&waiting).Error; err != nil {
				w.t.Error(err)
				return
			}
		}
	}
}

func TestFirstRun(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		first, err := w.FirstRun(t.Context())
		if err != nil || !first {
			t.Fatalf("on an empty database: %v, %v", first, err)
		}
		// Servers that start at the same time on one database create one first admin.
		var wg sync.WaitGroup
		errs := make(chan error, 4)
		release := w.holdUsers(cap(errs))
		for i := range cap(errs) {
			wg.Go(func() {
				_, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: fmt.Sprint("admin", i), Admin: true, First: true})
				errs <- err
			})
		}
		release()
		wg.Wait()
		close(errs)
		made := 0
		for err := range errs {
			if err == nil {
				made++
			} else {
				wantCode(t, "a second first admin", err, fault.Conflict)
			}
		}
		if made != 1 {
			t.Fatalf("%d first admins were made", made)
		}
		if first, err := w.FirstRun(t.Context()); err != nil || first {
			t.Fatalf("with a user: %v, %v", first, err)
		}
	})
}

func TestUsers(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		id := space.NewSpaceID()
		bob, bobSpace, err := w.CreateUser(t.Context(), store.Actor{User: ann.ID, Via: "web"},
			store.NewUser{Name: "bob", Display: "Bob Ö.", Email: "bob@x.example", Issuer: "https://idp.example", Subject: "42", Space: id, SpaceName: "notes"})
		if err != nil {
			t.Fatal(err)
		}
		if bobSpace.ID != id || bobSpace.Name != "notes" || bobSpace.Owner != bob.ID || annSpace.Name != "ann" {
			t.Errorf("spaces: %+v, %+v", annSpace, bobSpace)
		}
		users, err := w.ListUsers(t.Context())
		if err != nil || len(users) != 2 || users[0] != ann || users[1] != bob {
			t.Errorf("ListUsers: %+v, %v; want %+v, %+v", users, err, ann, bob)
		}
		if got, err := w.FindUser(t.Context(), "bob"); err != nil || got != bob {
			t.Errorf("FindUser: %+v, %v", got, err)
		}
		if got, err := w.User(t.Context(), bob.ID); err != nil || got != bob {
			t.Errorf("User: %+v, %v", got, err)
		}
		for _, tt := range []struct {
			name string
			n    store.NewUser
			want fault.Code
		}{
			{"same name", store.NewUser{Name: "ann"}, fault.Conflict},
			{"same sign-in", store.NewUser{Name: "bob2", Issuer: "https://idp.example", Subject: "42"}, fault.Conflict},
			{"same space id", store.NewUser{Name: "bob3", Space: id}, fault.Conflict},
			{"no name", store.NewUser{}, fault.Invalid},
			{"name with a space", store.NewUser{Name: "a b"}, fault.Invalid},
			{"bad space name", store.NewUser{Name: "x", SpaceName: "../x"}, fault.Invalid},
			{"Attack: a space id that is a path", store.NewUser{Name: "x", Space: "../../etc"}, fault.Invalid},
			{"Attack: a display name with terminal escapes", store.NewUser{Name: "x", Display: "\x1b[2Jx"}, fault.Invalid},
			{"Attack: an address with a line end", store.NewUser{Name: "x", Email: "a@b\nbcc: c@d"}, fault.Invalid},
			{"long display name", store.NewUser{Name: "x", Display: strings.Repeat("x", 201)}, fault.Invalid},
			{"issuer without subject", store.NewUser{Name: "x", Issuer: "https://idp.example"}, fault.Invalid},
		} {
			_, _, err := w.CreateUser(t.Context(), cli, tt.n)
			wantCode(t, tt.name, err, tt.want)
		}
		_, err = w.FindUser(t.Context(), "nobody")
		wantCode(t, "unknown user", err, fault.NotFound)
		if st, err := w.Stats(t.Context()); err != nil || st != (store.Stats{Users: 2, Admins: 1, Spaces: 2}) {
			t.Errorf("Stats after refusals: %+v, %v", st, err)
		}
		if got := w.actions(); got != "user.create space.create user.create space.create" {
			t.Errorf("the audit log has: %s", got)
		}
		entries, err := w.Audit(t.Context(), 3, 1)
		if err != nil || len(entries) != 1 || entries[0].ID != 2 || entries[0].Actor != cli || !entries[0].At.Equal(w.clock()) ||
			entries[0].Subject != string(annSpace.ID) || !strings.Contains(entries[0].Detail, `"name":"ann"`) {
			t.Errorf("the entry before 3: %+v, %v", entries, err)
		}
	})
}

func TestRemoveUser(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		bob, bobSpace := w.user("bob", false)
		wantCode(t, "remove the only admin", w.RemoveUser(t.Context(), cli, ann.ID), fault.Conflict)
		if err := w.AddMember(t.Context(), cli, annSpace.ID, bob.ID, space.Editor); err != nil {
			t.Fatal(err)
		}
		own := w.key(bob, bobSpace, "read write")
		shared := w.key(bob, annSpace, "read")
		if err := w.RemoveUser(t.Context(), cli, bob.ID); err != nil {
			t.Fatal(err)
		}
		for name, k := range map[string]string{"own space": own, "shared space": shared} {
			_, err := w.Verify(t.Context(), k)
			wantCode(t, "a removed user's key for "+name, err, fault.Unauthenticated)
		}
		_, err := w.FindUser(t.Context(), "bob")
		wantCode(t, "find a removed user", err, fault.NotFound)
		wantCode(t, "remove a user again", w.RemoveUser(t.Context(), cli, bob.ID), fault.NotFound)
		if m, err := w.Members(t.Context(), annSpace.ID); err != nil || len(m) != 1 {
			t.Errorf("a removed user is still a member: %v, %v", m, err)
		}
		if _, err := w.Space(t.Context(), bobSpace.ID); err != nil {
			t.Errorf("the removed user's space is gone: %v", err)
		}
		// The name is free, and its next user inherits nothing.
		bob2, _ := w.user("bob", false)
		if m, err := w.SpacesOf(t.Context(), bob2.ID); err != nil || len(m) != 1 || m[0].ID == bobSpace.ID {
			t.Errorf("the new bob has %v, %v", m, err)
		}
		_, err = w.Verify(t.Context(), own)
		wantCode(t, "the old bob's key", err, fault.Unauthenticated)
	})
}

func TestTwoAdminsCannotRemoveEachOther(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		bob, _ := w.user("bob", true)
		var wg sync.WaitGroup
		release := w.holdUsers(2)
		for _, id := range []space.UserID{ann.ID, bob.ID} {
			wg.Go(func() { w.RemoveUser(t.Context(), cli, id) })
		}
		release()
		wg.Wait()
		if st, err := w.Stats(t.Context()); err != nil || st.Admins != 1 {
			t.Errorf("%d admins are left, %v", st.Admins, err)
		}
	})
}

func TestUndoCreateUser(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		bob, bobSpace := w.user("bob", false)
		if err := w.AddMember(t.Context(), cli, bobSpace.ID, ann.ID, space.Reader); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "someone is a member of the space", w.UndoCreateUser(t.Context(), cli, bob.ID), fault.Conflict)
		if err := w.RemoveMember(t.Context(), cli, bobSpace.ID, ann.ID); err != nil {
			t.Fatal(err)
		}
		if err := w.AddMember(t.Context(), cli, annSpace.ID, bob.ID, space.Reader); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "the user is a member elsewhere", w.UndoCreateUser(t.Context(), cli, bob.ID), fault.Conflict)
		if err := w.RemoveMember(t.Context(), cli, annSpace.ID, bob.ID); err != nil {
			t.Fatal(err)
		}
		if err := w.UndoCreateUser(t.Context(), cli, bob.ID); err != nil {
			t.Fatal(err)
		}
		_, err := w.Space(t.Context(), bobSpace.ID)
		wantCode(t, "the undone space", err, fault.NotFound)
		if st, err := w.Stats(t.Context()); err != nil || st.Users != 1 || st.Spaces != 1 {
			t.Errorf("left: %+v, %v", st, err)
		}
		w.key(ann, annSpace, "read")
		wantCode(t, "the user has a key", w.UndoCreateUser(t.Context(), cli, ann.ID), fault.Conflict)
	})
}

func TestSpacesAndMembers(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		bob, bobSpace := w.user("bob", false)
		w.pass(time.Second)
		team, err := w.CreateSpace(t.Context(), cli, ann.ID, space.NewSpaceID(), "team")
		if err != nil {
			t.Fatal(err)
		}
		bobTeam, err := w.CreateSpace(t.Context(), cli, bob.ID, space.NewSpaceID(), "team")
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.CreateSpace(t.Context(), cli, ann.ID, space.NewSpaceID(), "team")
		wantCode(t, "a second space of one name", err, fault.Conflict)
		_, err = w.CreateSpace(t.Context(), cli, "u_nobody", space.NewSpaceID(), "x")
		wantCode(t, "a space of nobody", err, fault.NotFound)

		_, err = w.FindSpace(t.Context(), bob.ID, string(team.ID))
		wantCode(t, "Attack: a space by id that is not the user's", err, fault.NotFound)
		_, err = w.FindSpace(t.Context(), bob.ID, "ann/team")
		wantCode(t, "Attack: a space by name that is not the user's", err, fault.NotFound)

		if err := w.AddMember(t.Context(), cli, team.ID, bob.ID, space.Reader); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			ref  string
			want space.SpaceID
			code fault.Code
		}{
			{"", bobSpace.ID, ""}, {"bob", bobSpace.ID, ""}, {"bob/bob", bobSpace.ID, ""},
			{"ann/team", team.ID, ""}, {"bob/team", bobTeam.ID, ""}, {string(team.ID), team.ID, ""},
			{"team", "", fault.Invalid}, {"ann", "", fault.NotFound}, {string(annSpace.ID), "", fault.NotFound},
			{strings.Repeat("x", 5000), "", fault.NotFound},
		} {
			m, err := w.FindSpace(t.Context(), bob.ID, tt.ref)
			if m.ID != tt.want || fault.CodeOf(err) != tt.code {
				t.Errorf("FindSpace(%.20q): got %s, %v; want %s, %q", tt.ref, m.ID, err, tt.want, tt.code)
			}
			if err != nil && len(err.Error()) > 300 {
				t.Errorf("FindSpace(%.20q): the error has %d bytes", tt.ref, len(err.Error()))
			}
		}
		got, err := w.SpacesOf(t.Context(), bob.ID)
		if err != nil || len(got) != 3 || got[0].ID != bobSpace.ID || got[1].ID != bobTeam.ID || got[2].ID != team.ID ||
			got[2].Role != space.Reader || got[2].OwnerName != "ann" || got[0].Role != space.Owner {
			t.Errorf("SpacesOf: %+v, %v", got, err)
		}

		if err := w.AddMember(t.Context(), cli, team.ID, bob.ID, space.Editor); err != nil {
			t.Fatal(err)
		}
		members, err := w.Members(t.Context(), team.ID)
		if err != nil || len(members) != 2 || members[0].Name != "ann" || members[0].Role != space.Owner || members[1].Name != "bob" || members[1].Role != space.Editor {
			t.Errorf("Members: %+v, %v", members, err)
		}
		for _, tt := range []struct {
			name string
			err  error
			want fault.Code
		}{
			{"make a second owner", w.AddMember(t.Context(), cli, team.ID, bob.ID, space.Owner), fault.Invalid},
			{"an unknown role", w.AddMember(t.Context(), cli, team.ID, bob.ID, "admin"), fault.Invalid},
			{"demote the owner", w.AddMember(t.Context(), cli, team.ID, ann.ID, space.Reader), fault.Invalid},
			{"remove the owner", w.RemoveMember(t.Context(), cli, team.ID, ann.ID), fault.Invalid},
			{"an unknown space", w.AddMember(t.Context(), cli, space.NewSpaceID(), bob.ID, space.Reader), fault.NotFound},
			{"an unknown user", w.AddMember(t.Context(), cli, team.ID, "u_x", space.Reader), fault.NotFound},
			{"remove no member", w.RemoveMember(t.Context(), cli, annSpace.ID, bob.ID), fault.NotFound},
		} {
			wantCode(t, tt.name, tt.err, tt.want)
		}
		if err := w.RemoveMember(t.Context(), cli, team.ID, bob.ID); err != nil {
			t.Fatal(err)
		}
		if all, err := w.Spaces(t.Context()); err != nil || len(all) != 4 {
			t.Errorf("Spaces: %v, %v", all, err)
		}
		want := "user.create space.create user.create space.create space.create space.create member.set member.set member.remove"
		if got := w.actions(); got != want {
			t.Errorf("the audit log has\n%s, want\n%s", got, want)
		}
	})
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "ann": true, "ann.lee-2_x": true, "9lives": true, strings.Repeat("a", 64): true,
		"": false, "Ann": false, "a b": false, "ä": false, "a/b": false, ".": false, "..": false, ".git": false,
		"-rf": false, "_x": false, "a\n": false, "a\x00": false, strings.Repeat("a", 65): false,
	} {
		if err := store.CheckName(name); (err == nil) != ok {
			t.Errorf("CheckName(%q) is %v", name, err)
		}
	}
}
