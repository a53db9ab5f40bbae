package store_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

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
	all, err := w.UnseenLinks(w.t.Context(), store.Session{User: u.ID, Method: "passkey"}, 10)
	if err != nil {
		w.t.Fatal(err)
	}
	return all.Links
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

// startBy is a session that began by the method.
func (w *world) startBy(u store.User, method string, added time.Time) store.Session {
	w.t.Helper()
	secret, _, err := w.StartSession(w.t.Context(), store.NewSession{User: u.ID, Method: method, WayAdded: added})
	if err != nil {
		w.t.Fatal(err)
	}
	_, in, err := w.CheckSession(w.t.Context(), secret.Reveal())
	if err != nil {
		w.t.Fatal(err)
	}
	return in
}

// A link of before there were notices is told of once it is used, as any other is; and
// a mailed one is not.
func TestUseOfALinkThatHadNoNotice(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		bob, _ := w.user("bob", false)
		link := w.madeLink(store.Actor{User: ann.ID, Via: "web"}, bob, "link")
		mailed := w.madeLink(store.Actor{User: bob.ID, Via: "mail"}, bob, "mail")
		own := w.madeLink(store.Actor{User: ann.ID, Via: "web"}, ann, "link")
		err := w.db.Transact(t.Context(), func(tx *gorm.DB) error { return tx.Exec("DELETE FROM auth_link_notices").Error })
		if err != nil {
			t.Fatal(err)
		}
		made := w.clock()
		w.pass(time.Minute)
		for _, l := range []auth.Secret{link, mailed, own} {
			w.useLink(l)
		}
		if n := w.unseen(bob); len(n) != 1 || n[0].By != ann.ID || !n[0].Created.Equal(made) || !n[0].Used.Equal(w.clock()) {
			t.Errorf("bob is told %+v", n)
		}
		if n := w.unseen(ann); len(n) > 0 {
			t.Errorf("ann is told of her own: %+v", n)
		}
	})
}

// Attack: who came in by a link of an admin's puts away what would tell of it, by that
// session, by another's, or by a page of before the link was used.
func TestAttackNoticesPutAway(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		bob, _ := w.user("bob", false)
		first := w.madeLink(store.Actor{User: ann.ID, Via: "web"}, bob, "link")
		put := func(in store.Session, at time.Time) error { return w.SeenLinks(t.Context(), in, at) }
		own, theirs := w.startBy(bob, "passkey", time.Time{}), w.startBy(bob, "link", time.Time{})
		shown, err := w.UnseenLinks(t.Context(), own, 3)
		if err != nil || shown.Stays != "" || shown.More != 0 || shown.Settled != 0 || !shown.AsOf.Equal(w.clock()) {
			t.Errorf("shown: %+v, %v", shown, err)
		}
		wantCode(t, "by a session of a link", put(theirs, shown.AsOf), fault.Forbidden)
		if err := put(w.startBy(ann, "passkey", time.Time{}), shown.AsOf); err != nil || len(w.unseen(bob)) != 1 {
			t.Errorf("another's session: %v", err)
		}
		if err := put(own, shown.AsOf.Add(-time.Millisecond)); err != nil || len(w.unseen(bob)) != 1 {
			t.Errorf("by a page of before it was made: %v", err)
		}
		if err := put(own, shown.AsOf); err != nil || len(w.unseen(bob)) != 0 {
			t.Errorf("by their own session: %v, %+v", err, w.unseen(bob))
		}
		w.pass(time.Minute)
		w.useLink(first)
		if n := w.unseen(bob); len(n) != 1 || n[0].Used.IsZero() {
			t.Errorf("the use of one that was put away is not shown: %+v", n)
		}
		if err := put(own, shown.AsOf); err != nil || len(w.unseen(bob)) != 1 {
			t.Errorf("by a page of before the use: %v", err)
		}
		if err := put(own, w.clock()); err != nil || len(w.unseen(bob)) != 0 {
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

// Attack: who came in by a link adds a way to sign in, comes back by it and puts away
// what tells of the link. After a month any session may.
func TestAttackNoticesPutAwayByANewWay(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		bob, _ := w.user("bob", false)
		before := w.clock()
		w.pass(time.Minute)
		link := w.madeLink(store.Actor{User: ann.ID, Via: "web"}, bob, "link")
		w.pass(time.Minute)
		meanwhile := w.clock() // nobody had come in by it
		w.pass(time.Minute)
		w.useLink(link)
		used := w.clock()
		if err := w.SetEmail(t.Context(), cli, bob.ID, "mallory@example.com"); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		for name, tt := range map[string]struct {
			method string
			added  time.Time
			stays  string
		}{
			"a passkey that was added at once": {"passkey", used, store.StaysNew},
			"one that was added later":         {"passkey", used.Add(time.Second), store.StaysNew},
			"an account elsewhere":             {"github", w.clock(), store.StaysNew},
			"mail to an address of since then": {"mail", time.Time{}, store.StaysNew},
			"the link itself":                  {"link", time.Time{}, store.StaysLink},
			"a passkey of before":              {"passkey", before, ""},
			"one of before it was used":        {"passkey", meanwhile, ""},
			"one of before there were times":   {"passkey", time.Time{}, ""},
		} {
			in := w.startBy(bob, tt.method, tt.added)
			u, err := w.UnseenLinks(t.Context(), in, 3)
			if err != nil || u.Stays != tt.stays || len(u.Links) != 1 || u.Settled != 0 {
				t.Errorf("%s: %+v, %v", name, u, err)
			}
			if tt.stays != "" {
				wantCode(t, name, w.SeenLinks(t.Context(), in, u.AsOf), fault.Forbidden)
			}
		}
		w.pass(30*24*time.Hour - 2*time.Minute)
		w.useLink(w.madeLink(store.Actor{User: ann.ID, Via: "web"}, bob, "link"))
		late := w.startBy(bob, "passkey", w.clock())
		wantCode(t, "the last moment", w.SeenLinks(t.Context(), late, w.clock()), fault.Forbidden)
		w.pass(time.Minute)
		if u, err := w.UnseenLinks(t.Context(), late, 3); err != nil || u.Stays != store.StaysNew || u.Settled != 1 {
			t.Errorf("after a month: %+v, %v", u, err)
		}
		if err := w.SeenLinks(t.Context(), late, w.clock()); err != nil {
			t.Error(err)
		}
		if n := w.unseen(bob); len(n) != 1 || !n[0].Used.After(used) {
			t.Errorf("after a month there are %+v", n)
		}
		wantCode(t, "the newer one", w.SeenLinks(t.Context(), late, w.clock()), fault.Forbidden)
	})
}

// Attack: whoever used a link adds a way to sign in, waits until the person has put that
// notice away, and puts away what tells of the next link.
func TestAttackALaterNoticePutAwayByAWayOfAnEarlierLink(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		// Of a time when nobody else used the server: it was her.
		w.useLink(w.madeLink(cli, ann, "link"))
		bob, _ := w.user("bob", false)
		before := w.clock()
		by := store.Actor{User: ann.ID, Via: "web"}
		w.pass(time.Minute)
		w.useLink(w.madeLink(by, bob, "link"))
		planted := w.clock()
		w.pass(time.Minute)
		old := w.startBy(bob, "passkey", before)
		if err := w.SeenLinks(t.Context(), old, w.clock()); err != nil || len(w.unseen(bob)) > 0 {
			t.Fatalf("%v, %+v", err, w.unseen(bob))
		}
		w.pass(time.Hour)
		w.useLink(w.madeLink(by, bob, "link"))
		later := w.startBy(bob, "passkey", planted)
		u, err := w.UnseenLinks(t.Context(), later, 3)
		if err != nil || u.Stays != store.StaysNew || len(u.Links) != 1 || !u.Until.Equal(planted.Add(30*24*time.Hour)) {
			t.Errorf("%+v, %v", u, err)
		}
		wantCode(t, "by a way of the first link", w.SeenLinks(t.Context(), later, u.AsOf), fault.Forbidden)
		if len(w.unseen(bob)) != 1 {
			t.Error("the second link is not told of")
		}
		if err := w.SeenLinks(t.Context(), old, w.clock()); err != nil || len(w.unseen(bob)) > 0 {
			t.Errorf("by a way of before both: %v", err)
		}
		w.pass(30 * 24 * time.Hour)
		w.madeLink(by, bob, "link")
		if err := w.SeenLinks(t.Context(), later, w.clock()); err != nil || len(w.unseen(bob)) > 0 {
			t.Errorf("a month after all that were used: %v", err)
		}
		w.madeLink(by, ann, "link") // is her own
		w.madeLink(cli, ann, "link")
		if err := w.SeenLinks(t.Context(), w.startBy(ann, "passkey", w.clock()), w.clock()); err != nil || len(w.unseen(ann)) > 0 {
			t.Errorf("a link that was her own keeps notices: %v", err)
		}
	})
}

// Who came back by a link alone is told from when on they can put its notice away, and
// then they can.
func TestWhenANoticeCanBePutAway(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		bob, _ := w.user("bob", false)
		w.useLink(w.madeLink(store.Actor{User: ann.ID, Via: "web"}, bob, "link"))
		end := w.clock().Add(30 * 24 * time.Hour)
		w.pass(time.Minute)
		sessions := map[string]store.Session{"the link": w.startBy(bob, "link", time.Time{}), "a passkey that was added": w.startBy(bob, "passkey", w.clock())}
		check := func(when string, until time.Time) {
			t.Helper()
			for name, in := range sessions {
				if u, err := w.UnseenLinks(t.Context(), in, 3); err != nil || len(u.Links) != 1 || !u.Until.Equal(until) {
					t.Errorf("%s, by %s: %+v, %v", when, name, u, err)
				}
			}
		}
		check("at once", end)
		w.pass(end.Sub(w.clock()) - time.Millisecond)
		check("before its end", end)
		for name, in := range sessions {
			wantCode(t, name, w.SeenLinks(t.Context(), in, w.clock()), fault.Forbidden)
		}
		w.pass(time.Millisecond)
		for name, in := range sessions {
			if u, err := w.UnseenLinks(t.Context(), in, 3); err != nil || u.Stays != "" && u.Settled != 1 {
				t.Errorf("at its end, by %s: %+v, %v", name, u, err)
			}
		}
		if err := w.SeenLinks(t.Context(), sessions["the link"], w.clock()); err != nil || len(w.unseen(bob)) > 0 {
			t.Errorf("at its end: %v", err)
		}
		if u, err := w.UnseenLinks(t.Context(), w.startBy(bob, "passkey", time.Time{}), 3); err != nil || !u.Until.IsZero() {
			t.Errorf("of nothing: %+v, %v", u, err)
		}
	})
}

// All that a page tells of is put away at once, however few it shows.
func TestManyNoticesArePutAwayAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.user("ann", true)
		bob, _ := w.user("bob", false)
		for range 20 {
			w.madeLink(cli, bob, "link")
			w.pass(time.Second)
		}
		in := w.startBy(bob, "passkey", time.Time{})
		u, err := w.UnseenLinks(t.Context(), in, 3)
		if err != nil || len(u.Links) != 3 || u.More != 17 {
			t.Fatalf("%+v, %v", u, err)
		}
		w.madeLink(cli, bob, "link")
		if err := w.SeenLinks(t.Context(), in, u.AsOf); err != nil {
			t.Fatal(err)
		}
		if n := w.unseen(bob); len(n) != 1 || !n[0].Created.Equal(w.clock()) {
			t.Errorf("left: %+v", n)
		}
		if n, err := w.CountLinkNotices(t.Context(), bob.ID); err != nil || n != 21 {
			t.Errorf("%d in all, %v", n, err)
		}
	})
}
