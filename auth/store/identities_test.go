package store_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
)

func passkey(u store.User, id string) store.Passkey {
	return store.Passkey{ID: []byte(id), User: u.ID, Name: "laptop", Credential: []byte("public key of " + id)}
}

func TestIdentities(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		id := store.Identity{Issuer: "https://github.com", Subject: "583231", Label: "ada", Email: "ada@example.com"}
		ada, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "ada", Identity: &id, Admitted: "github:ada"})
		if err != nil || ada.Issuer != id.Issuer || ada.Subject != id.Subject || ada.Admitted != "github:ada" {
			t.Fatalf("CreateUser: %+v, %v", ada, err)
		}
		bob, _ := w.user("bob", false)
		u, err := w.UserByIdentity(t.Context(), id.Issuer, id.Subject)
		if err != nil || u.ID != ada.ID {
			t.Fatalf("UserByIdentity: %+v, %v", u, err)
		}
		_, err = w.UserByIdentity(t.Context(), "https://github.example", id.Subject)
		wantCode(t, "Attack: the subject at another issuer", err, fault.NotFound)
		_, err = w.UserByIdentity(t.Context(), store.LocalIssuer, string(bob.ID))
		wantCode(t, "Attack: a local user as an identity", err, fault.NotFound)

		stolen := id
		stolen.User = bob.ID
		wantCode(t, "Attack: link what is another's", w.LinkIdentity(t.Context(), cli, stolen), fault.Conflict)
		_, _, err = w.CreateUser(t.Context(), cli, store.NewUser{Name: "eve", Identity: &id})
		wantCode(t, "Attack: a second user of it", err, fault.Conflict)
		for name, bad := range map[string]store.Identity{
			"no issuer":     {User: bob.ID, Subject: "1"},
			"no subject":    {User: bob.ID, Issuer: "https://github.com"},
			"the local one": {User: bob.ID, Issuer: store.LocalIssuer, Subject: string(ada.ID)},
			"without end":   {User: bob.ID, Issuer: "https://github.com", Subject: strings.Repeat("1", 2000)},
		} {
			wantCode(t, name, w.LinkIdentity(t.Context(), cli, bad), fault.Invalid)
		}

		link(t, w, ada, "https://issuer.example", "a")
		again := store.Identity{User: ada.ID, Issuer: "https://issuer.example", Subject: "a", Label: "renamed", Email: "new@example.com"}
		if err := w.LinkIdentity(t.Context(), cli, again); err != nil {
			t.Fatal(err)
		}
		list, err := w.Identities(t.Context(), ada.ID)
		if err != nil || len(list) != 2 || list[0].Subject != "583231" || list[0].Email != "ada@example.com" || list[1].Label != "renamed" || list[1].Email != "new@example.com" {
			t.Errorf("Identities: %+v, %v", list, err)
		}
		if w.audited("identity.link") != 1 {
			t.Errorf("the audit log has %s", w.actions())
		}

		// Another user can take an identity after its unlinking, even if a user was created
		// with it.
		if err := w.UnlinkIdentity(t.Context(), cli, ada.ID, id.Issuer, id.Subject); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "unlink again", w.UnlinkIdentity(t.Context(), cli, ada.ID, id.Issuer, id.Subject), fault.NotFound)
		if eve, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "eve", Identity: &id}); err != nil || eve.ID == ada.ID {
			t.Errorf("a user with what was unlinked: %v", err)
		}
		if u, err := w.User(t.Context(), ada.ID); err != nil || u.Issuer != store.LocalIssuer {
			t.Errorf("the user without it: %+v, %v", u, err)
		}
	})
}

func TestIdentitiesOfOneUserAreBounded(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		for i := range 50 {
			link(t, w, ann, "https://issuer.example", fmt.Sprint(i))
		}
		link(t, w, ann, "https://issuer.example", "49")
		err := w.LinkIdentity(t.Context(), cli, store.Identity{User: ann.ID, Issuer: "https://issuer.example", Subject: "50"})
		wantCode(t, "one more", err, fault.Limited)
	})
}

func TestUserByEmail(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		add := func(name, email string) store.User {
			t.Helper()
			u, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: name, Email: email})
			if err != nil {
				t.Fatal(err)
			}
			return u
		}
		ada := add("ada", "Ada.K@Example.com")
		bob := add("bob", "two@example.com")
		// If two users had one address, neither could sign in with it.
		_, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "carl", Email: "TWO@example.com"})
		wantCode(t, "a second of an address", err, fault.Conflict)
		carl, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "carl", Email: "TWO@example.com", Identity: &store.Identity{Issuer: "https://id.example", Subject: "c"}})
		if err != nil || carl.Email != "" {
			t.Errorf("who signs in otherwise: %q, %v", carl.Email, err)
		}
		add("none", "")
		dora := add("dora", "i@example.com")
		for _, tt := range []struct {
			email string
			want  store.User
		}{
			{"ada.k@example.com", ada}, {"ADA.K@EXAMPLE.COM", ada}, {"I@EXAMPLE.COM", dora},
			{"two@example.com", bob}, {"", store.User{}}, {"ada.%@example.com", store.User{}},
			{"ada.\u212a@example.com", store.User{}}, // Attack: the Kelvin sign is not a k
			{"\u0130@example.com", store.User{}},     // Attack: the dotted I is not an i
			{strings.Repeat("a", 100_000), store.User{}},
		} {
			u, err := w.UserByEmail(t.Context(), tt.email)
			if u.ID != tt.want.ID || (fault.CodeOf(err) == fault.NotFound) != (tt.want.ID == "") {
				t.Errorf("%.30q: got %s, %v; want %s", tt.email, u.Name, err, tt.want.Name)
			}
		}
		if err := w.RemoveUser(t.Context(), cli, dora.ID); err != nil {
			t.Fatal(err)
		}
		_, err = w.UserByEmail(t.Context(), "i@example.com")
		wantCode(t, "a removed user", err, fault.NotFound)
	})
}

func TestPasskeys(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		bob, _ := w.user("bob", false)
		if has, err := w.HasPasskeys(t.Context()); err != nil || has != false {
			t.Fatalf("HasPasskeys without one: %t, %v", has, err)
		}
		if err := w.AddPasskey(t.Context(), cli, passkey(ann, "one")); err != nil {
			t.Fatal(err)
		}
		if has, err := w.HasPasskeys(t.Context()); err != nil || has != true {
			t.Fatalf("HasPasskeys with one: %t, %v", has, err)
		}
		made := w.clock().Truncate(time.Millisecond)
		w.pass(time.Hour)
		u, p, err := w.PasskeyByID(t.Context(), []byte("one"))
		if err != nil || u.ID != ann.ID || p.User != ann.ID || p.Name != "laptop" || string(p.Credential) != "public key of one" || !p.Created.Equal(made) || !p.Used.IsZero() {
			t.Fatalf("PasskeyByID: %+v, %v", p, err)
		}
		if err := w.UsePasskey(t.Context(), []byte("one"), []byte("counted")); err != nil {
			t.Fatal(err)
		}
		list, err := w.Passkeys(t.Context(), ann.ID)
		if err != nil || len(list) != 1 || string(list[0].Credential) != "counted" || !list[0].Used.Equal(made.Add(time.Hour)) {
			t.Errorf("Passkeys: %+v, %v", list, err)
		}
		wantCode(t, "Attack: another's credential", w.AddPasskey(t.Context(), cli, passkey(bob, "one")), fault.Conflict)
		wantCode(t, "an unknown one used", w.UsePasskey(t.Context(), []byte("two"), []byte("x")), fault.NotFound)
		_, _, err = w.PasskeyByID(t.Context(), []byte("two"))
		wantCode(t, "an unknown one", err, fault.NotFound)
		for name, bad := range map[string]store.Passkey{
			"no id":                      {User: ann.ID, Credential: []byte("x")},
			"an id longer than WebAuthn": {ID: bytes.Repeat([]byte("x"), 1024), User: ann.ID, Credential: []byte("x")},
			"no credential":              {ID: []byte("x"), User: ann.ID},
			"a name without end":         {ID: []byte("x"), User: ann.ID, Credential: []byte("x"), Name: strings.Repeat("x", 1000)},
		} {
			wantCode(t, name, w.AddPasskey(t.Context(), cli, bad), fault.Invalid)
		}
		for i := range 49 {
			if err := w.AddPasskey(t.Context(), cli, passkey(ann, fmt.Sprint("more-", i))); err != nil {
				t.Fatal(err)
			}
		}
		wantCode(t, "the 51st", w.AddPasskey(t.Context(), cli, passkey(ann, "51")), fault.Limited)
		if err := w.RemovePasskey(t.Context(), cli, ann.ID, []byte("one")); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "removed again", w.RemovePasskey(t.Context(), cli, ann.ID, []byte("one")), fault.NotFound)
		if w.audited("passkey.add") != 50 || w.audited("passkey.remove") != 1 {
			t.Error("not all is in the audit log")
		}
	})
}

// A removed user cannot sign in. An invitation lets the same person become a new user.
// Attack: a removed user signs in again while the allow list still contains them.
func TestRemovedUserIsBarredUntilInvited(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		id := store.Identity{Issuer: "https://github.com", Subject: "1", Email: "Work@Example.com"}
		bob, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "bob", Email: "bob@example.com", Identity: &id})
		if err != nil {
			t.Fatal(err)
		}
		blocked := func(issuer, subject, email string) bool {
			t.Helper()
			b, err := w.Blocked(t.Context(), issuer, subject, email)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		if blocked(id.Issuer, id.Subject, "bob@example.com") {
			t.Error("a user is blocked")
		}
		if err := w.RemoveUser(t.Context(), cli, bob.ID); err != nil {
			t.Fatal(err)
		}
		for name, who := range map[string][3]string{
			"the identity": {id.Issuer, id.Subject, ""}, "another with their address": {"https://id.example", "9", "BOB@example.com"},
			"another with the address of the identity": {"https://id.example", "9", "work@example.com"},
		} {
			if !blocked(who[0], who[1], who[2]) {
				t.Errorf("%s is not blocked", name)
			}
		}
		for name, who := range map[string][3]string{
			"somebody else": {id.Issuer, "2", "eve@example.com"}, "the subject at another issuer": {"https://id.example", id.Subject, ""}, "nobody": {"", "", ""},
		} {
			if blocked(who[0], who[1], who[2]) {
				t.Errorf("%s is blocked", name)
			}
		}
		back, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "bob", Email: "bob@example.com", Identity: &id})
		if err != nil {
			t.Fatal(err)
		}
		inv, _, err := w.CreateInvitation(t.Context(), cli, store.NewInvitation{By: ann.ID, Lifetime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.AcceptInvitation(t.Context(), cli, inv.Reveal(), back.ID); err != nil {
			t.Fatal(err)
		}
		if blocked(id.Issuer, id.Subject, "") || blocked("https://id.example", "9", "bob@example.com") {
			t.Error("who was invited again is blocked")
		}
	})
}

func TestRemovedUserMayComeBackAsANewOne(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		id := store.Identity{Issuer: "https://github.com", Subject: "1"}
		bob, bobSpace, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "bob", Email: "bob@example.com", Identity: &id})
		if err != nil {
			t.Fatal(err)
		}
		secret, _ := w.session(bob)
		if err := w.AddPasskey(t.Context(), cli, passkey(bob, "one")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.CreateLink(t.Context(), cli, bob.ID, "link", time.Hour); err != nil {
			t.Fatal(err)
		}
		inv, _, err := w.CreateInvitation(t.Context(), cli, store.NewInvitation{By: bob.ID, Space: bobSpace.ID, Role: "editor", Lifetime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		code, kept := w.code(consent(bob, bobSpace)), w.connect(ann, annSpace)
		if err := w.RemoveUser(t.Context(), cli, bob.ID); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"auth_sessions", "auth_links", "auth_passkeys", "auth_identities", "auth_invitations"} {
			if n := w.count(table); n != 0 {
				t.Errorf("%d rows are left in %s", n, table)
			}
		}
		_, err = w.PeekInvitation(t.Context(), inv.Reveal())
		wantCode(t, "their invitation", err, fault.NotFound)
		_, err = w.Redeem(t.Context(), redemption(code))
		wantCode(t, "their code", err, fault.Invalid)
		if w.signedIn(secret) || !w.works(kept) {
			t.Error("their session is good, or another's token is not")
		}
		back, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "bob", Email: "bob@example.com", Identity: &id})
		if err != nil || back.ID == bob.ID {
			t.Fatalf("the identity came back as %s, %v", back.ID, err)
		}
		if err := w.AddPasskey(t.Context(), cli, passkey(back, "one")); err != nil {
			t.Error(err)
		}
		if w.signedIn(secret) {
			t.Error("Attack: the old session is the new user's")
		}
		if m, err := w.SpacesOf(t.Context(), back.ID); err != nil || len(m) != 1 || m[0].ID == bobSpace.ID {
			t.Errorf("the new user has %+v, %v", m, err)
		}
	})
}
