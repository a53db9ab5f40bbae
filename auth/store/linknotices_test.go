package store_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/auth/store"
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

func (w *world) recent(u store.User) []store.LinkNotice {
	w.t.Helper()
	all, _, err := w.RecentLinks(w.t.Context(), u.ID, 10)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// People see the links that others created for them, and no other links.
func TestWhoIsToldOfALink(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		alone := w.madeLink(cli, ann, "link")
		if n, ok, err := w.NoticeOf(t.Context(), alone.Reveal()); err != nil || !ok || !n.Own || len(w.recent(ann)) > 0 {
			t.Errorf("the only person here made one by the command: %+v, %v, %v", n, ok, err)
		}
		w.useLink(alone)
		if n, _, err := w.NoticeOf(t.Context(), alone.Reveal()); err != nil || !n.Own || n.Used.IsZero() || len(w.recent(ann)) > 0 {
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
		if n := len(w.recent(bob)); n != 2 {
			t.Errorf("%d are shown", n)
		}
		if n, ok, err := w.NoticeOf(t.Context(), "garbage"); ok || err != nil {
			t.Errorf("of garbage: %+v, %v", n, err)
		}
	})
}

// Used links come first. A newer link ends the older one. A removed creator keeps their name.
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

// A link from before the notices gets a notice when it is used. A mailed link gets none.
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
		if n := w.recent(bob); len(n) != 1 || n[0].By != ann.ID || !n[0].Created.Equal(made) || !n[0].Used.Equal(w.clock()) {
			t.Errorf("bob is told %+v", n)
		}
		if n := w.recent(ann); len(n) > 0 {
			t.Errorf("ann is told of her own: %+v", n)
		}
	})
}

// People see a notice for 30 days after the link was created, and again for 30 days after
// it was used. A short list says how many more notices there are.
func TestHowLongALinkIsShown(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		bob, _ := w.user("bob", false)
		by := store.Actor{User: ann.ID, Via: "web"}
		used := w.madeLink(by, bob, "link")
		w.pass(14 * time.Minute)
		w.useLink(used)
		w.madeLink(by, bob, "link")
		if list, more, err := w.RecentLinks(t.Context(), bob.ID, 1); err != nil || len(list) != 1 || more != 1 || list[0].Used.IsZero() {
			t.Errorf("of two, one is shown: %+v, %d more, %v", list, more, err)
		}
		w.pass(30*24*time.Hour - time.Millisecond)
		if n := w.recent(bob); len(n) != 2 {
			t.Errorf("at the end of 30 days: %+v", n)
		}
		w.pass(time.Millisecond)
		if n := w.recent(bob); len(n) != 0 {
			t.Errorf("after 30 days: %+v", n)
		}
		if all, err := w.LinkNotices(t.Context(), bob.ID, 10); err != nil || len(all) != 2 {
			t.Errorf("the account lists %+v, %v", all, err)
		}
	})
}
