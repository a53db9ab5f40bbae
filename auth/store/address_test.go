package store_test

import (
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func TestCheckEmail(t *testing.T) {
	for s, ok := range map[string]bool{
		"ada@example.com": true, "Ada.K+x@sub.example.com": true, "ada@localhost": true,
		"": false, "ada": false, "@example.com": false, "Ada <ada@example.com>": false, "<ada@example.com>": false,
		"ada@example.com, eve@example.com": false, "ada@example.com\r\nBcc: eve@example.com": false, " ada@example.com": false,
		"ad\u00e1@example.com": false, "ada@ex\u0430mple.com": false, strings.Repeat("a", 200) + "@example.com": false,
	} {
		if err := store.CheckEmail(s); (err == nil) != ok || err != nil && fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%.40q: %v", s, err)
		}
	}
}

func (w *world) email(u store.User) string {
	w.t.Helper()
	got, err := w.User(w.t.Context(), u.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return got.Email
}

func TestSetEmail(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		bob, _ := w.user("bob", false)
		for _, address := range []string{"Ann@example.com", "Ann@example.com", "ann@example.com"} {
			if err := w.SetEmail(t.Context(), cli, ann.ID, address); err != nil {
				t.Fatal(err)
			}
			if u, err := w.UserByEmail(t.Context(), "ANN@example.com"); err != nil || u.ID != ann.ID || u.Email != address {
				t.Errorf("%s is the address of %+v, %v", address, u, err)
			}
		}
		wantCode(t, "Attack: an address of somebody else, who could not sign in any more", w.SetEmail(t.Context(), cli, bob.ID, "ANN@EXAMPLE.COM"), fault.Conflict)
		wantCode(t, "no address", w.SetEmail(t.Context(), cli, bob.ID, "bob"), fault.Invalid)
		wantCode(t, "nobody", w.SetEmail(t.Context(), cli, "u_x", "x@example.com"), fault.NotFound)
		if n := w.audited("user.email"); n != 2 {
			t.Errorf("the audit log has %d changes", n)
		}
		if err := w.SetEmail(t.Context(), cli, ann.ID, ""); err != nil || w.email(ann) != "" {
			t.Errorf("removed: %q, %v", w.email(ann), err)
		}
		wantCode(t, "what is free", w.SetEmail(t.Context(), cli, bob.ID, "ann@example.com"), "")
	})
}

func TestLinkIdentityBringsAnAddress(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		bob, _ := w.user("bob", false)
		eve, _ := w.user("eve", false)
		for i, tt := range []struct {
			user            store.User
			email, bob, eve string
		}{
			{bob, "", "", ""},
			{bob, "bob@example.com", "bob@example.com", ""},
			{bob, "new@example.com", "bob@example.com", ""},
			{eve, "BOB@example.com", "bob@example.com", ""}, // Attack: this would keep bob from signing in
			{eve, "\u00e9@example.com", "bob@example.com", ""},
			{eve, "eve@example.com", "bob@example.com", "eve@example.com"},
		} {
			id := store.Identity{User: tt.user.ID, Issuer: "https://idp.example", Subject: string(rune('a' + i)), Email: tt.email}
			if err := w.LinkIdentity(t.Context(), cli, id); err != nil {
				t.Fatal(err)
			}
			if b, e := w.email(bob), w.email(eve); b != tt.bob || e != tt.eve {
				t.Errorf("after %s linked %q: bob has %q, eve %q", tt.user.Name, tt.email, b, e)
			}
		}
	})
}

func TestInvitationBringsAnAddress(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		bob, bobSpace := w.user("bob", false)
		toBobs := func(by space.UserID, email string) store.NewInvitation {
			return store.NewInvitation{By: by, Email: email, Space: bobSpace.ID, Role: space.Reader}
		}
		for _, tt := range []struct {
			name, has string
			n         store.NewInvitation
			want      string
		}{
			{"an-admins", "", store.NewInvitation{By: ann.ID, Email: "one@example.com"}, "one@example.com"},
			{"the-command-lines", "", store.NewInvitation{Email: "two@example.com"}, "two@example.com"},
			{"who-has-one", "three@example.com", store.NewInvitation{Email: "other@example.com"}, "three@example.com"},
			{"taken", "", store.NewInvitation{Email: "ONE@example.com"}, ""},
			// Attack: bob would get the links with which the new user signs in.
			{"a-members", "", toBobs(bob.ID, "bobs@example.com"), ""},
		} {
			u, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: tt.name, Email: tt.has, Admitted: "invitation", Invitation: w.invite(tt.n)})
			if err != nil || u.Email != tt.want || w.email(u) != tt.want {
				t.Errorf("%s: %q, %q, want %q; %v", tt.name, u.Email, w.email(u), tt.want, err)
			}
		}
		// An existing user keeps their address.
		if _, err := w.AcceptInvitation(t.Context(), cli, w.invite(store.NewInvitation{Email: "b@example.com"}), bob.ID); err != nil || w.email(bob) != "" {
			t.Errorf("a user who accepted one: %q, %v", w.email(bob), err)
		}
		_, _, err := w.CreateInvitation(t.Context(), cli, store.NewInvitation{Email: "no address", Lifetime: time.Hour})
		wantCode(t, "no address", err, fault.Invalid)
	})
}
