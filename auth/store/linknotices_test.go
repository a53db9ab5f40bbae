package store_test

import (
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func (w *world) madeLink(by store.Actor, u store.User, method string) auth.Secret {
	w.t.Helper()
	secret, err := w.CreateLink(w.t.Context(), by, u.ID, method, 15*time.Minute)
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

func (w *world) useLink(secret auth.Secret) {
	w.t.Helper()
	if _, _, err := w.UseLink(w.t.Context(), secret.Reveal()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) unseen(u store.User) []store.LinkNotice {
	w.t.Helper()
	all, err := w.UnseenLinks(w.t.Context(), u.ID, 10)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// A person is told of the links that others made for them, and of no others.
func TestWhoIsToldOfALink(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		alone := w.madeLink(cli, ann, "link")
		if n, ok, err := w.NoticeOf(t.Context(), alone.Reveal()); err != nil || !ok || !n.Own || len(w.unseen(ann)) > 0 {
			t.Errorf("the only person here made one by the command: %+v, %v, %v", n, ok, err)
		}
		w.useLink(alone)
		if n, _, err := w.NoticeOf(t.Context(), alone.Reveal()); err != nil || !n.Own || n.Used.IsZero() || len(w.unseen(ann)) > 0 {
			t.Errorf("they used it: %+v, %v", n, err)
		}
		bob, _ := w.user("bob", false)
		web := store.Actor{User: ann.ID, Via: "web"}
		for name, tt := range map[string]struct {
			by     store.Actor
			method string
			want   bool
			who    space.UserID
			named  string
		}{
			"an admin made it":                {web, "link", true, ann.ID, "ann"},
			"the command line made it":        {cli, "link", true, "", ""},
			"they had it mailed to their own": {store.Actor{User: bob.ID, Via: "mail"}, "mail", false, "", ""},
		} {
			secret := w.madeLink(tt.by, bob, tt.method)
			n, ok, err := w.NoticeOf(t.Context(), secret.Reveal())
			if err != nil || ok != tt.want {
				t.Fatalf("%s: %v, %v", name, ok, err)
			}
			if ok && (n.By != tt.who || n.ByName != tt.named || n.User != bob.ID || !n.Created.Equal(w.clock()) || !n.Expires.Equal(w.clock().Add(15*time.Minute)) || !n.Used.IsZero() || n.Own) {
				t.Errorf("%s: %+v", name, n)
			}
		}
		if n := len(w.unseen(bob)); n != 2 {
			t.Errorf("%d are unseen", n)
		}
		if n, ok, err := w.NoticeOf(t.Context(), "garbage"); ok || err != nil {
			t.Errorf("of garbage: %+v, %v", n, err)
		}
	})
}

// One that was used is told of first, a newer link ends the one before, and a maker
// who was removed is called what they were.
func TestWhatIsToldOfLinks(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.user("ann", true)
		gil, _ := w.user("gil", true)
		bob, _ := w.user("bob", false)
		w.useLink(w.madeLink(store.Actor{User: gil.ID, Via: "web"}, bob, "link"))
		w.pass(time.Minute)
		w.madeLink(cli, bob, "link")
		w.pass(time.Minute)
		w.madeLink(cli, bob, "link")
		if err := w.RemoveUser(t.Context(), cli, gil.ID); err != nil {
			t.Fatal(err)
		}
		all, err := w.LinkNotices(t.Context(), bob.ID, 3)
		if err != nil || len(all) != 3 {
			t.Fatalf("%+v, %v", all, err)
		}
		now := w.clock()
		if n := all[0]; n.ByName != "gil (removed)" || !n.Used.Equal(now.Add(-2*time.Minute)) {
			t.Errorf("the used one: %+v", n)
		}
		if n := all[1]; !n.Created.Equal(now) || !n.Expires.After(now) {
			t.Errorf("the newest: %+v", n)
		}
		if n := all[2]; !n.Expires.Equal(now) || !n.Used.IsZero() {
			t.Errorf("the one that it ended: %+v", n)
		}
		if all, err = w.LinkNotices(t.Context(), bob.ID, 1); err != nil || len(all) != 1 || all[0].Used.IsZero() {
			t.Errorf("attack: many links hide the one that was used: %+v, %v", all, err)
		}
	})
}

// ATTACK: who came in by a link of an admin's puts away what would tell of it, by
// that session, by ids of others or by what was shown before the link was used.
func TestAttackNoticesPutAway(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		bob, _ := w.user("bob", false)
		first := w.madeLink(store.Actor{User: ann.ID, Via: "web"}, bob, "link")
		id := w.unseen(bob)[0].ID
		put := func(in store.Session, used bool) error {
			return w.SeenLinks(t.Context(), in, []store.SeenLink{{ID: id, Used: used}})
		}
		start := func(u store.User, method string) store.Session {
			_, in, err := w.StartSession(t.Context(), store.NewSession{User: u.ID, Method: method})
			if err != nil {
				t.Fatal(err)
			}
			return in
		}
		own, theirs := start(bob, "passkey"), start(bob, "link")
		wantCode(t, "by a session of a link", put(theirs, false), fault.Forbidden)
		for name, in := range map[string]store.Session{"another's session": start(ann, "passkey")} {
			if err := put(in, false); err != nil || len(w.unseen(bob)) != 1 {
				t.Errorf("%s: %v, %+v", name, err, w.unseen(bob))
			}
		}
		if err := put(own, true); err != nil || len(w.unseen(bob)) != 1 {
			t.Errorf("as used, before it was: %v", err)
		}
		if err := put(own, false); err != nil || len(w.unseen(bob)) != 0 {
			t.Errorf("by their own session: %v, %+v", err, w.unseen(bob))
		}
		w.useLink(first)
		if n := w.unseen(bob); len(n) != 1 || n[0].Used.IsZero() {
			t.Errorf("the use of one that was put away is not shown: %+v", n)
		}
		if err := put(own, false); err != nil || len(w.unseen(bob)) != 1 {
			t.Errorf("by a page of before the use: %v", err)
		}
		if err := put(own, true); err != nil || len(w.unseen(bob)) != 0 {
			t.Errorf("the use: %v", err)
		}
		if all, err := w.LinkNotices(t.Context(), bob.ID, 10); err != nil || len(all) != 1 {
			t.Errorf("it does not last: %+v, %v", all, err)
		}
		if w.audited("link.seen") != 2 {
			t.Error("the audit log does not have who put it away")
		}
	})
}
