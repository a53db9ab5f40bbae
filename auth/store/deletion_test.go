package store_test

import (
	"strings"
	"sync"
	"testing"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// second gives a user another space, so that one of them can be deleted.
func (w *world) second(u store.User, name string) store.Space {
	w.t.Helper()
	sp, err := w.CreateSpace(w.t.Context(), cli, u.ID, space.NewSpaceID(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return sp
}

func (w *world) rowsOf(table, column string, id space.SpaceID) (n int64) {
	w.t.Helper()
	if err := w.db.Read(w.t.Context()).Raw("SELECT COUNT(*) FROM "+table+" WHERE "+column+" = ?", string(id)).Scan(&n).Error; err != nil {
		w.t.Fatal(err)
	}
	return n
}

// To its owner, members, clients and invited people, a deleted space looks as if it had
// never existed. The audit log keeps its entries and its name.
func TestDeleteSpace(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		gil, own := w.user("gil", true)
		bob, bobs := w.user("bob", false)
		carl, _ := w.user("carl", false)
		sp := w.second(gil, "garden")
		fine(t, w.AddMember(ctx, cli, sp.ID, bob.ID, space.Editor))
		key, bobKey, kept := w.key(gil, sp, "read write"), w.key(bob, sp, "read"), w.key(bob, bobs, "read")
		tokens := w.connect(bob, sp)
		code := w.code(consent(gil, sp))
		inv := w.invite(store.NewInvitation{By: gil.ID, Space: sp.ID, Role: space.Reader})
		fine(t, w.LinkRepository(ctx, gil.ID, "web", githubLink(gil, sp, 7)))
		link(t, w, bob, "https://idp.example", "bob-there")
		x := external("bob-there")
		x.Issuer, x.Space = "https://idp.example", string(sp.ID)
		if _, err := w.External(ctx, x); err != nil {
			t.Fatal(err)
		}

		gone, err := w.DeleteSpace(ctx, store.Actor{User: gil.ID, Via: "web"}, sp.ID, gil.ID)
		if err != nil || gone.ID != sp.ID || gone.Link == nil || gone.Link.Repository != 7 {
			t.Fatalf("deleted %+v, %v", gone, err)
		}

		for what, secret := range map[string]string{"the owner's key": key, "a member's key": bobKey} {
			_, err := w.Verify(ctx, secret)
			wantCode(t, what, err, fault.Unauthenticated)
		}
		_, err = w.VerifyAccess(ctx, tokens.Access.Reveal(), consent(gil, sp).Resource)
		wantCode(t, "a member's access token", err, fault.Unauthenticated)
		_, err = w.Refresh(ctx, renewal(tokens.Refresh))
		wantCode(t, "a member's refresh token", err, fault.Invalid)
		_, err = w.Redeem(ctx, redemption(code))
		wantCode(t, "a code that was not redeemed", err, fault.Invalid)
		_, err = w.PeekInvitation(ctx, inv)
		wantCode(t, "an invitation", err, fault.NotFound)
		_, err = w.AcceptInvitation(ctx, cli, inv, carl.ID)
		wantCode(t, "accepting an invitation", err, fault.NotFound)
		_, err = w.External(ctx, x)
		wantCode(t, "another issuer's client", err, fault.Forbidden)
		_, err = w.Space(ctx, sp.ID)
		wantCode(t, "its row", err, fault.NotFound)
		_, err = w.FindSpace(ctx, gil.ID, "garden")
		wantCode(t, "its name", err, fault.NotFound)
		wantCode(t, "a new member", w.AddMember(ctx, cli, sp.ID, carl.ID, space.Reader), fault.NotFound)
		wantCode(t, "another name", w.RenameSpace(ctx, cli, sp.ID, "other"), fault.NotFound)
		wantCode(t, "a gift of it", w.GiveSpace(ctx, cli, sp.ID, bob.ID), fault.NotFound)
		wantCode(t, "another repository", w.LinkRepository(ctx, gil.ID, "web", githubLink(gil, sp, 8)), fault.NotFound)
		_, _, err = w.CreateKey(ctx, cli, store.NewKey{User: gil.ID, Space: sp.ID, Scopes: []space.Scope{space.ScopeRead}})
		wantCode(t, "a new key", err, fault.NotFound)
		_, _, err = w.CreateInvitation(ctx, store.Actor{User: gil.ID}, store.NewInvitation{By: gil.ID, Space: sp.ID, Role: space.Reader, Lifetime: day})
		wantCode(t, "a new invitation", err, fault.NotFound)
		_, err = w.DeleteSpace(ctx, cli, sp.ID, "")
		wantCode(t, "deleting it again", err, fault.NotFound)
		_, err = w.CreateSpace(ctx, cli, gil.ID, sp.ID, "again")
		wantCode(t, "another space of its id", err, fault.Conflict)

		for _, at := range [][2]string{
			{"auth_members", "space_id"}, {"auth_grants", "space_id"}, {"auth_codes", "space_id"}, {"auth_invitations", "space_id"},
			{"auth_github_links", "space_id"}, {"auth_github_requests", "space_id"}, {"auth_spaces", "id"},
		} {
			if n := w.rowsOf(at[0], at[1], sp.ID); n != 0 {
				t.Errorf("%s has %d rows of it", at[0], n)
			}
		}
		if _, err := w.Verify(ctx, kept); err != nil {
			t.Errorf("a key of another space: %v", err)
		}
		if m, err := w.FindSpace(ctx, gil.ID, ""); err != nil || m.ID != own.ID {
			t.Errorf("the owner's first space is %+v, %v", m, err)
		}
		fine(t, w.LinkRepository(ctx, gil.ID, "web", githubLink(gil, own, 7))) // the repository is free again
		w.second(gil, "garden")                                                // the name is free again
		if log := w.actions(); !strings.Contains(log, "github.unlink space.delete") || !strings.Contains(log, "key.create") {
			t.Errorf("the audit log has %s", log)
		}
		if names, err := w.NamesOf(ctx, []string{string(sp.ID)}); err != nil || names[string(sp.ID)] != "gil/garden (deleted)" {
			t.Errorf("it is called %v, %v", names, err)
		}

		list, err := w.DeletedSpaces(ctx)
		if err != nil || len(list) != 1 || list[0].ID != sp.ID || list[0].Ended {
			t.Fatalf("deleted are %+v, %v", list, err)
		}
		fine(t, w.SpaceEnded(ctx, sp.ID))
		if list, err = w.DeletedSpaces(ctx); err != nil || len(list) != 1 || !list[0].Ended {
			t.Errorf("deleted are %+v, %v", list, err)
		}
		if err := w.Flush(ctx); err != nil {
			t.Errorf("times of last use of what was deleted: %v", err)
		}
	})
}

func TestWhoseSpaceIsNotDeleted(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		gil, own := w.user("gil", true)
		bob, bobs := w.user("bob", false)
		sp := w.second(gil, "garden")
		fine(t, w.AddMember(ctx, cli, sp.ID, bob.ID, space.Editor))
		for _, c := range []struct {
			name  string
			id    space.SpaceID
			owner space.UserID
			want  fault.Code
		}{
			{"ATTACK: another's", own.ID, bob.ID, fault.NotFound},
			{"ATTACK: one that they are a member of", sp.ID, bob.ID, fault.NotFound},
			{"one that never was", space.NewSpaceID(), gil.ID, fault.NotFound},
			{"no id", "\x00", gil.ID, fault.NotFound},
			{"the only one", bobs.ID, bob.ID, fault.Conflict},
			{"the only one, by a command", bobs.ID, "", fault.Conflict},
		} {
			_, err := w.DeleteSpace(ctx, cli, c.id, c.owner)
			wantCode(t, c.name, err, c.want)
		}
		if st, err := w.Stats(ctx); err != nil || st.Spaces != 3 {
			t.Errorf("%+v, %v", st, err)
		}
		// The only space of a removed user can be deleted.
		fine(t, w.RemoveUser(ctx, cli, bob.ID))
		_, err := w.DeleteSpace(ctx, cli, bobs.ID, "")
		fine(t, err)
		if names, err := w.NamesOf(ctx, []string{string(bobs.ID)}); err != nil || names[string(bobs.ID)] != "bob (deleted)" {
			t.Errorf("it is called %v, %v", names, err)
		}
	})
}

// If both of a user's last two spaces are deleted at once, one remains.
func TestLastTwoSpacesAreNotDeletedAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		gil, first := w.user("gil", true)
		ids := []space.SpaceID{first.ID, w.second(gil, "garden").ID}
		var wg sync.WaitGroup
		errs := make([]error, len(ids))
		release := w.holdUsers(len(ids))
		for i, id := range ids {
			wg.Go(func() { _, errs[i] = w.DeleteSpace(t.Context(), cli, id, gil.ID) })
		}
		release()
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("%v", errs)
		}
		for _, err := range errs {
			if err != nil {
				wantCode(t, "the other one", err, fault.Conflict)
			}
		}
		if all, err := w.SpacesOf(t.Context(), gil.ID); err != nil || len(all) != 1 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// An operation that adds something while the space is deleted fails, and says that there is
// no such space.
func TestWhatIsAddedWhileASpaceIsDeleted(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		gil, _ := w.user("gil", true)
		bob, _ := w.user("bob", false)
		carl, _ := w.user("carl", false)
		for range 10 {
			sp := w.second(gil, "garden")
			fine(t, w.AddMember(ctx, cli, sp.ID, bob.ID, space.Editor))
			code, inv := w.code(consent(bob, sp)), w.invite(store.NewInvitation{By: gil.ID, Space: sp.ID, Role: space.Reader})
			tokens := w.connect(bob, sp)
			acts := map[string]func() error{
				"delete": func() error { _, err := w.DeleteSpace(ctx, cli, sp.ID, ""); return err },
				"key": func() error {
					_, _, err := w.CreateKey(ctx, cli, store.NewKey{User: bob.ID, Space: sp.ID, Scopes: []space.Scope{space.ScopeRead}})
					return err
				},
				"member":  func() error { return w.AddMember(ctx, cli, sp.ID, carl.ID, space.Reader) },
				"accept":  func() error { _, err := w.AcceptInvitation(ctx, cli, inv, carl.ID); return err },
				"redeem":  func() error { _, err := w.Redeem(ctx, redemption(code)); return err },
				"refresh": func() error { _, err := w.Refresh(ctx, renewal(tokens.Refresh)); return err },
				"link":    func() error { return w.LinkRepository(ctx, gil.ID, "web", githubLink(gil, sp, 7)) },
				"flush":   func() error { return w.Flush(ctx) },
			}
			var wg sync.WaitGroup
			var mu sync.Mutex
			for what, act := range acts {
				wg.Go(func() {
					err := act()
					mu.Lock()
					defer mu.Unlock()
					switch code := fault.CodeOf(err); {
					case err == nil, code == fault.NotFound && what != "delete", code == fault.Invalid && (what == "redeem" || what == "refresh"):
					default:
						t.Errorf("%s: %v", what, err)
					}
				})
			}
			wg.Wait()
			for _, table := range []string{"auth_members", "auth_grants", "auth_codes", "auth_github_links"} {
				if n := w.rowsOf(table, "space_id", sp.ID); n != 0 {
					t.Errorf("%s has %d rows of it", table, n)
				}
			}
		}
	})
}

func TestGiveOwnSpace(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		gil, _ := w.user("gil", true)
		bob, bobs := w.user("bob", false)
		carl, _ := w.user("carl", false)
		sp := w.second(gil, "garden")
		fine(t, w.AddMember(ctx, cli, sp.ID, bob.ID, space.Reader))
		fine(t, w.AddMember(ctx, cli, bobs.ID, gil.ID, space.Editor))
		by := func(u store.User) store.Actor { return store.Actor{User: u.ID, Via: "web"} }
		for _, c := range []struct {
			name      string
			owner, to store.User
			id        space.SpaceID
			want      fault.Code
		}{
			{"ATTACK: by a member", bob, bob, sp.ID, fault.NotFound},
			{"ATTACK: by a stranger", carl, carl, sp.ID, fault.NotFound},
			{"to who is no member", gil, carl, sp.ID, fault.NotFound},
			{"to nobody", gil, store.User{ID: "\x00"}, sp.ID, fault.NotFound},
			{"to themself", gil, gil, sp.ID, fault.Invalid},
			{"their only one", bob, gil, bobs.ID, fault.Conflict},
		} {
			wantCode(t, c.name, w.GiveOwnSpace(ctx, by(c.owner), c.owner.ID, c.id, c.to.ID), c.want)
		}
		key := w.key(gil, sp, "read write")
		fine(t, w.GiveOwnSpace(ctx, by(gil), gil.ID, sp.ID, bob.ID))
		got, err := w.Space(ctx, sp.ID)
		if err != nil || got.Owner != bob.ID {
			t.Errorf("%+v, %v", got, err)
		}
		if p, err := w.Verify(ctx, key); err != nil || p.Role != space.Editor {
			t.Errorf("the former owner's client: %+v, %v", p, err)
		}
		wantCode(t, "giving it again", w.GiveOwnSpace(ctx, by(gil), gil.ID, sp.ID, bob.ID), fault.NotFound)
	})
}
