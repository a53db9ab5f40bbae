package store_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func TestSetAdmin(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		bob, _ := w.user("bob", false)
		wantCode(t, "the only admin", w.SetAdmin(t.Context(), cli, ann.ID, false), fault.Conflict)
		wantCode(t, "nobody", w.SetAdmin(t.Context(), cli, "u_x", true), fault.NotFound)
		for range 2 { // the second call changes nothing
			if err := w.SetAdmin(t.Context(), cli, bob.ID, true); err != nil {
				t.Fatal(err)
			}
		}
		// Attack: two admins demote each other at the same time.
		release := w.holdUsers(2)
		var errs [2]error
		var wg sync.WaitGroup
		for i, u := range []store.User{ann, bob} {
			wg.Go(func() { errs[i] = w.SetAdmin(t.Context(), cli, u.ID, false) })
		}
		release()
		wg.Wait()
		if st, err := w.Stats(t.Context()); err != nil || st.Admins != 1 {
			t.Errorf("%d admins are left, %v; %v", st.Admins, err, errs)
		}
		if n := w.audited("user.admin"); n != 2 {
			t.Errorf("the audit log has %d changes", n)
		}
	})
}

// If only the allow list admits a person, they lose access with their entry, and get access
// again with it.
func TestSuspendUnlisted(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		invited, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "carl", Admitted: "invitation"})
		if err != nil {
			t.Fatal(err)
		}
		bob, bobSpace := w.listed("bob")
		if err := w.AddMember(t.Context(), cli, annSpace.ID, bob.ID, space.Editor); err != nil {
			t.Fatal(err)
		}
		key, tok := w.key(bob, bobSpace, "read write"), w.connect(bob, bobSpace)
		session, _ := w.session(bob)
		use := func() string {
			var out []string
			if _, err := w.Verify(t.Context(), key); err == nil {
				out = append(out, "key")
			} else if !strings.Contains(fault.PublicOf(err), "no longer use this server") {
				t.Errorf("the key's owner is told %v", err)
			}
			if w.works(tok) {
				out = append(out, "token")
			}
			if w.signedIn(session) {
				out = append(out, "session")
			}
			return strings.Join(out, " ")
		}
		sweep := func(listed ...string) (suspended, restored []space.UserID) {
			t.Helper()
			suspended, restored, err := w.SuspendUnlisted(t.Context(), cli, func(e string) bool { return slices.Contains(listed, e) })
			if err != nil {
				t.Fatal(err)
			}
			return suspended, restored
		}
		if s, r := sweep(entry, "email:x@y.z"); len(s)+len(r) != 0 || use() != "key token session" {
			t.Errorf("with the entry: %v, %v; %s work", s, r, use())
		}
		if s, r := sweep(); !slices.Equal(s, []space.UserID{bob.ID}) || len(r) != 0 || use() != "" {
			t.Errorf("without it: %v, %v; %s work", s, r, use())
		}
		if s, r := sweep("domain:other.example"); len(s)+len(r) != 0 {
			t.Errorf("again without it: %v, %v", s, r)
		}
		if u, err := w.User(t.Context(), bob.ID); err != nil || !u.Suspended.Equal(w.clock().Truncate(time.Millisecond)) || u.Admitted != entry {
			t.Errorf("the user is %+v, %v", u, err)
		}
		for name, err := range map[string]error{
			"a key": func() error {
				_, _, err := w.CreateKey(t.Context(), cli, store.NewKey{User: bob.ID, Space: bobSpace.ID, Scopes: []space.Scope{space.ScopeRead}})
				return err
			}(),
			"a passkey": w.AddPasskey(t.Context(), cli, passkey(bob, "one")),
			"a sign-in": w.LinkIdentity(t.Context(), cli, store.Identity{User: bob.ID, Issuer: "https://github.com", Subject: "1"}),
		} {
			wantCode(t, "Attack: a suspended user gets "+name, err, fault.Forbidden)
		}
		if s, r := sweep(entry); len(s) != 0 || !slices.Equal(r, []space.UserID{bob.ID}) || use() != "key token session" {
			t.Errorf("with the entry again: %v, %v; %s work", s, r, use())
		}

		// Another entry admits them now.
		sweep()
		if err := w.Readmit(t.Context(), cli, bob.ID, "github:bob"); err != nil {
			t.Fatal(err)
		}
		if use() != "key token session" {
			t.Errorf("readmitted: %s work", use())
		}
		if s, _ := sweep("github:bob"); len(s) != 0 {
			t.Errorf("readmitted, and suspended again: %v", s)
		}
		if w.audited("user.suspend") != 2 || w.audited("user.restore") != 2 {
			t.Errorf("the audit log has %s", w.actions())
		}
		for _, u := range []store.User{ann, invited} {
			if got, _ := w.User(t.Context(), u.ID); !got.Suspended.IsZero() {
				t.Errorf("%s was let in otherwise and is suspended", u.Name)
			}
		}
	})
}

// If the allow list contains no admin any more, one admin can still run the server.
func TestTheOnlyAdminIsNeverSuspended(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		first, _ := w.listed("first")
		w.pass(time.Second)
		later, _ := w.listed("later")
		for _, u := range []store.User{first, later} {
			if err := w.SetAdmin(t.Context(), cli, u.ID, true); err != nil {
				t.Fatal(err)
			}
		}
		gone, _, err := w.SuspendUnlisted(t.Context(), cli, func(string) bool { return false })
		if err != nil || !slices.Equal(gone, []space.UserID{later.ID}) {
			t.Errorf("suspended %v, %v; want the later one alone", gone, err)
		}
		wantCode(t, "the last who is not suspended", w.SetAdmin(t.Context(), cli, first.ID, false), fault.Conflict)
		wantCode(t, "the last who is not suspended, removed", w.RemoveUser(t.Context(), cli, first.ID), fault.Conflict)
	})
}
