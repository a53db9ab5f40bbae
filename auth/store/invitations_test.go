package store_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func (w *world) invite(n store.NewInvitation) string {
	w.t.Helper()
	if n.Lifetime == 0 {
		n.Lifetime = 7 * day
	}
	secret, _, err := w.CreateInvitation(w.t.Context(), store.Actor{User: n.By, Via: "web"}, n)
	if err != nil {
		w.t.Fatal(err)
	}
	return secret.Reveal()
}

func (w *world) role(u store.User, id space.SpaceID) space.Role {
	w.t.Helper()
	members, err := w.Members(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range members {
		if m.User == u.ID {
			return m.Role
		}
	}
	return ""
}

func TestInvitation(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		bob, _ := w.user("bob", false)
		secret := w.invite(store.NewInvitation{By: ann.ID, Note: "for Bob", Email: "bob@example.com", Space: annSpace.ID, Role: space.Editor})
		i, err := w.PeekInvitation(t.Context(), secret)
		if err != nil || i.By != ann.ID || i.ByName != "ann" || i.Note != "for Bob" || i.Email != "bob@example.com" || i.Admin || i.Space != annSpace.ID ||
			i.SpaceName != "ann" || i.Role != space.Editor || !i.Used.IsZero() || !i.Expires.Equal(i.Created.Add(7*day)) {
			t.Fatalf("PeekInvitation: %+v, %v", i, err)
		}
		open, err := w.Invitations(t.Context(), ann.ID)
		if err != nil || len(open) != 1 || open[0] != i {
			t.Errorf("Invitations: %+v, %v", open, err)
		}
		_, err = w.AcceptInvitation(t.Context(), cli, secret, ann.ID)
		wantCode(t, "the inviter's own", err, fault.Conflict)
		got, err := w.AcceptInvitation(t.Context(), store.Actor{User: bob.ID, Via: "web"}, secret, bob.ID)
		if err != nil || got.ID != i.ID || got.UsedBy != bob.ID || !got.Used.Equal(w.clock().Truncate(time.Millisecond)) {
			t.Errorf("AcceptInvitation: %+v, %v", got, err)
		}
		if r := w.role(bob, annSpace.ID); r != space.Editor {
			t.Errorf("bob is %q", r)
		}
		_, err = w.AcceptInvitation(t.Context(), cli, secret, bob.ID)
		wantCode(t, "accepted again", err, fault.NotFound)
		if open, _ := w.Invitations(t.Context(), ""); len(open) != 0 {
			t.Errorf("open: %+v", open)
		}
	})
}

func TestInvitationIsAcceptedOnceOf20InParallel(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		secret := w.invite(store.NewInvitation{By: ann.ID, Space: annSpace.ID, Role: space.Reader})
		// Half of them are users already. The invitation creates the other half.
		users := make([]store.User, 10)
		for i := range users {
			users[i], _ = w.user(fmt.Sprint("old", i), false)
		}
		release := w.holdUsers(5)
		var n atomic.Int32
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if _, err := w.AcceptInvitation(t.Context(), cli, secret, users[i].ID); err == nil {
					n.Add(1)
				} else {
					wantCode(t, "a further one", err, fault.NotFound)
				}
			})
			wg.Go(func() {
				if _, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: fmt.Sprint("new", i), Invitation: secret}); err == nil {
					n.Add(1)
				} else {
					wantCode(t, "a further new user", err, fault.NotFound)
				}
			})
		}
		release()
		wg.Wait()
		members, err := w.Members(t.Context(), annSpace.ID)
		if n.Load() != 1 || err != nil || len(members) != 2 || w.audited("invitation.accept") != 1 {
			t.Errorf("accepted %d times; members %+v, %v", n.Load(), members, err)
		}
	})
}

func TestInvitationNeverLowersARole(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		bob, _ := w.user("bob", false)
		for _, tt := range []struct{ has, invited, want space.Role }{
			{"", space.Reader, space.Reader},
			{space.Reader, space.Reader, space.Reader},
			{space.Reader, space.Editor, space.Editor},
			{space.Editor, space.Reader, space.Editor},
			{space.Editor, space.Editor, space.Editor},
		} {
			if r := w.role(bob, annSpace.ID); r != tt.has {
				t.Fatalf("bob is %q before, want %q", r, tt.has)
			}
			secret := w.invite(store.NewInvitation{By: ann.ID, Space: annSpace.ID, Role: tt.invited})
			if _, err := w.AcceptInvitation(t.Context(), cli, secret, bob.ID); err != nil {
				t.Fatal(err)
			}
			if r := w.role(bob, annSpace.ID); r != tt.want {
				t.Errorf("a %q invited as %s is %q", tt.has, tt.invited, r)
			}
			if tt.has != tt.want || tt.invited != space.Editor {
				continue
			}
		}
		// The owner accepts an invitation that a command created, and stays the owner.
		secret := w.invite(store.NewInvitation{Space: annSpace.ID, Role: space.Reader})
		if _, err := w.AcceptInvitation(t.Context(), cli, secret, ann.ID); err != nil || w.role(ann, annSpace.ID) != space.Owner {
			t.Errorf("the owner is %q, %v", w.role(ann, annSpace.ID), err)
		}
	})
}

func TestCreateInvitationRefuses(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		bob, bobSpace := w.listed("bob")
		if err := w.AddMember(t.Context(), cli, annSpace.ID, bob.ID, space.Editor); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			name string
			n    store.NewInvitation
			want fault.Code
		}{
			{"to the server, by no admin", store.NewInvitation{By: bob.ID}, fault.Forbidden},
			{"Attack: to be an admin, by no admin", store.NewInvitation{By: bob.ID, Space: bobSpace.ID, Role: space.Reader, Admin: true}, fault.Forbidden},
			{"Attack: an editor to the space", store.NewInvitation{By: bob.ID, Space: annSpace.ID, Role: space.Reader}, fault.NotFound},
			{"Attack: an admin to another's space", store.NewInvitation{By: ann.ID, Space: bobSpace.ID, Role: space.Reader}, fault.NotFound},
			{"an unknown space", store.NewInvitation{By: ann.ID, Space: space.NewSpaceID(), Role: space.Reader}, fault.NotFound},
			{"an unknown inviter", store.NewInvitation{By: "u_x"}, fault.NotFound},
			{"as an owner", store.NewInvitation{By: ann.ID, Space: annSpace.ID, Role: space.Owner}, fault.Invalid},
			{"as nothing", store.NewInvitation{By: ann.ID, Space: annSpace.ID}, fault.Invalid},
			{"a role of no space", store.NewInvitation{By: ann.ID, Role: space.Reader}, fault.Invalid},
			{"for no time", store.NewInvitation{By: ann.ID, Lifetime: -1}, fault.Invalid},
			{"with a note with a control character", store.NewInvitation{By: ann.ID, Note: "a\x1bb"}, fault.Invalid},
		} {
			if tt.n.Lifetime == 0 {
				tt.n.Lifetime = time.Hour
			}
			secret, _, err := w.CreateInvitation(t.Context(), store.Actor{User: tt.n.By, Via: "web"}, tt.n)
			wantCode(t, tt.name, err, tt.want)
			if secret.Reveal() != "" {
				t.Errorf("%s: an invitation was made", tt.name)
			}
		}
		if _, _, err := w.CreateInvitation(t.Context(), store.Actor{User: bob.ID}, store.NewInvitation{Lifetime: time.Hour}); err == nil {
			t.Error("Attack: somebody invites as the command line")
		}
		w.suspend(bob)
		_, _, err := w.CreateInvitation(t.Context(), cli, store.NewInvitation{By: bob.ID, Space: bobSpace.ID, Role: space.Reader, Lifetime: time.Hour})
		wantCode(t, "a suspended inviter", err, fault.Forbidden)
	})
}

// An invitation gives only what its inviter may still give.
func TestInvitationEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    func(inviter store.User, own store.Space) store.NewInvitation
		do   func(t *testing.T, w *world, inviter store.User, secret string) error
	}{
		{"expired to the millisecond", nil, func(t *testing.T, w *world, _ store.User, _ string) error {
			w.pass(7 * day)
			return nil
		}},
		{"revoked", nil, func(t *testing.T, w *world, inviter store.User, secret string) error {
			i, err := w.PeekInvitation(t.Context(), secret)
			if err != nil {
				return err
			}
			return w.RevokeInvitation(t.Context(), cli, i.ID, inviter.ID)
		}},
		{"the inviter was removed", nil, func(t *testing.T, w *world, inviter store.User, _ string) error {
			return w.RemoveUser(t.Context(), cli, inviter.ID)
		}},
		{"the inviter was suspended", nil, func(t *testing.T, w *world, inviter store.User, _ string) error {
			w.suspend(inviter)
			return nil
		}},
		{"Attack: to the server, and the inviter is no admin any more",
			func(inviter store.User, _ store.Space) store.NewInvitation {
				return store.NewInvitation{By: inviter.ID}
			},
			func(t *testing.T, w *world, inviter store.User, _ string) error {
				return w.SetAdmin(t.Context(), cli, inviter.ID, false)
			}},
		{"Attack: to be an admin, and the inviter is none any more",
			func(inviter store.User, own store.Space) store.NewInvitation {
				return store.NewInvitation{By: inviter.ID, Admin: true, Space: own.ID, Role: space.Reader}
			},
			func(t *testing.T, w *world, inviter store.User, _ string) error {
				return w.SetAdmin(t.Context(), cli, inviter.ID, false)
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.user("ann", true)
				bob, _ := w.user("bob", false)
				inviter, own := w.listed("carl")
				if err := w.SetAdmin(t.Context(), cli, inviter.ID, true); err != nil {
					t.Fatal(err)
				}
				n := store.NewInvitation{By: inviter.ID, Space: own.ID, Role: space.Editor}
				if tt.n != nil {
					n = tt.n(inviter, own)
				}
				secret := w.invite(n)
				if err := tt.do(t, w, inviter, secret); err != nil {
					t.Fatal(err)
				}
				_, err := w.PeekInvitation(t.Context(), secret)
				wantCode(t, "PeekInvitation", err, fault.NotFound)
				_, err = w.AcceptInvitation(t.Context(), cli, secret, bob.ID)
				wantCode(t, "AcceptInvitation", err, fault.NotFound)
				_, _, err = w.CreateUser(t.Context(), cli, store.NewUser{Name: "dora", Invitation: secret})
				wantCode(t, "CreateUser", err, fault.NotFound)
				if _, err := w.FindUser(t.Context(), "dora"); fault.CodeOf(err) != fault.NotFound {
					t.Errorf("a user was made: %v", err)
				}
				if open, err := w.Invitations(t.Context(), ""); err != nil || len(open) != 0 {
					t.Errorf("open: %+v, %v", open, err)
				}
				if r := w.role(bob, own.ID); r != "" {
					t.Errorf("bob is %s", r)
				}
				if u, _ := w.User(t.Context(), bob.ID); u.Admin {
					t.Error("bob is an admin")
				}
			})
		})
	}
	each(t, func(t *testing.T, w *world) {
		for _, s := range []string{"", "' OR 1=1 --", auth.NewSecret(auth.KindInvitation).Reveal(), auth.NewKey().Reveal()} {
			_, err := w.PeekInvitation(t.Context(), s)
			wantCode(t, "an unknown one", err, fault.NotFound)
		}
		wantCode(t, "revoke an unknown one", w.RevokeInvitation(t.Context(), cli, "iv_x", ""), fault.NotFound)
	})
}

func TestInvitationToBeAnAdmin(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		u, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "bob", Admitted: "invitation", Invitation: w.invite(store.NewInvitation{By: ann.ID, Admin: true})})
		if err != nil || !u.Admin {
			t.Fatalf("CreateUser: %+v, %v", u, err)
		}
		if got, err := w.User(t.Context(), u.ID); err != nil || !got.Admin || got.Admitted != "invitation" {
			t.Errorf("the user is %+v, %v", got, err)
		}
		if w.audited("user.admin") != 1 {
			t.Errorf("the audit log has %s", w.actions())
		}
	})
}

// If a new user could not get a space, their invitation stays open.
func TestUndoCreateUserGivesTheInvitationBack(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		secret := w.invite(store.NewInvitation{By: ann.ID, Space: annSpace.ID, Role: space.Editor})
		id := store.Identity{Issuer: "https://github.com", Subject: "1"}
		for range 2 {
			bob, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "bob", Identity: &id, Invitation: secret})
			if err != nil {
				t.Fatal(err)
			}
			if w.role(bob, annSpace.ID) != space.Editor {
				t.Error("bob is no editor")
			}
			if err := w.UndoCreateUser(t.Context(), cli, bob.ID); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.count("auth_members"); n != 1 {
			t.Errorf("%d members are left", n)
		}
	})
}
