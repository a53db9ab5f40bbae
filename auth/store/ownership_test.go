package store_test

import (
	"strings"
	"sync"
	"testing"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Attack: somebody takes the name of a removed owner, to appear as the owner of their spaces.
func TestNameOfARemovedOwnerOwnsNothing(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.user("admin", true)
		gil, gilSpace := w.user("gil", false)
		bob, _ := w.user("bob", false)
		if err := w.AddMember(t.Context(), cli, gilSpace.ID, bob.ID, space.Editor); err != nil {
			t.Fatal(err)
		}
		link(t, w, bob, "https://idp.example", "bob-there")
		if err := w.RemoveUser(t.Context(), cli, gil.ID); err != nil {
			t.Fatal(err)
		}
		again, itsSpace := w.user("gil", false)
		if err := w.AddMember(t.Context(), cli, itsSpace.ID, bob.ID, space.Reader); err != nil {
			t.Fatal(err)
		}

		all, err := w.SpacesOf(t.Context(), bob.ID)
		if err != nil || len(all) != 3 {
			t.Fatalf("%+v, %v", all, err)
		}
		labels := map[space.SpaceID]string{}
		for _, m := range all {
			labels[m.ID] = m.OwnerName + "|" + m.OwnerLabel()
		}
		if labels[gilSpace.ID] != "|nobody (was gil)" || labels[itsSpace.ID] != "gil|gil" {
			t.Errorf("the owners are %v", labels)
		}
		for ref, want := range map[string]space.SpaceID{
			"gil/gil": itsSpace.ID, string(gilSpace.ID): gilSpace.ID, "/gil": "", "gil": "", "nobody (was gil)/gil": "",
		} {
			if m, err := w.FindSpace(t.Context(), bob.ID, ref); m.ID != want || (err == nil) != (want != "") {
				t.Errorf("%q is %s, want %s; %v", ref, m.ID, want, err)
			}
			x := external("bob-there")
			x.Issuer, x.Space = "https://idp.example", ref
			if p, err := w.External(t.Context(), x); p.Space != want || (err == nil) != (want != "") {
				t.Errorf("another issuer's client: %q is %s, want %s; %v", ref, p.Space, want, err)
			}
		}
		_, err = w.FindSpace(t.Context(), bob.ID, "gil")
		if got := fault.PublicOf(err); !strings.Contains(got, string(gilSpace.ID)) || !strings.Contains(got, "gil/gil") {
			t.Errorf("who writes the name alone is told %q", got)
		}
		if m, err := w.SpacesOf(t.Context(), again.ID); err != nil || len(m) != 1 || m[0].ID != itsSpace.ID {
			t.Errorf("the new gil has %+v, %v", m, err)
		}
		names, err := w.UserNames(t.Context())
		if err != nil || names[gil.ID] != (store.UserName{Name: "gil", Removed: true}) || names[again.ID] != (store.UserName{Name: "gil"}) {
			t.Errorf("names: %v, %v", names, err)
		}
	})
}

func TestFindSpaceNamesWhatThereIs(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		admin, _ := w.user("admin", true)
		bob, _ := w.user("bob", false)
		team, err := w.CreateSpace(t.Context(), cli, admin.ID, space.NewSpaceID(), "team")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.AddMember(t.Context(), cli, team.ID, bob.ID, space.Reader); err != nil {
			t.Fatal(err)
		}
		_, err = w.FindSpace(t.Context(), bob.ID, "admin")
		if got, want := fault.PublicOf(err), `bob has no space "admin"; they have: bob, admin/team`; got != want || fault.CodeOf(err) != fault.NotFound {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestGiveSpace(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		bob, _ := w.user("bob", false)
		cleo, _ := w.user("cleo", false)
		gil, _ := w.user("gil", false)
		newTeam := func(u store.User) store.Space {
			t.Helper()
			sp, err := w.CreateSpace(t.Context(), cli, u.ID, space.NewSpaceID(), "team")
			if err != nil {
				t.Fatal(err)
			}
			return sp
		}
		team, _ := newTeam(ann), newTeam(cleo)
		if err := w.AddMember(t.Context(), cli, team.ID, bob.ID, space.Reader); err != nil {
			t.Fatal(err)
		}
		annKey, bobKey := w.key(ann, team, "read write"), w.key(bob, team, "read")

		for _, tt := range []struct {
			name string
			id   space.SpaceID
			to   space.UserID
			want fault.Code
		}{
			{"to who has a space of that name", team.ID, cleo.ID, fault.Conflict},
			{"to the owner", team.ID, ann.ID, fault.Invalid},
			{"to nobody", team.ID, "u_x", fault.NotFound},
			{"of no space", space.NewSpaceID(), bob.ID, fault.NotFound},
		} {
			wantCode(t, tt.name, w.GiveSpace(t.Context(), cli, tt.id, tt.to), tt.want)
		}
		if w.audited("space.give") != 0 {
			t.Error("what was refused is in the audit log")
		}

		if err := w.GiveSpace(t.Context(), cli, team.ID, bob.ID); err != nil {
			t.Fatal(err)
		}
		role := func(id space.SpaceID) string {
			t.Helper()
			members, err := w.Members(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, m := range members {
				out = append(out, m.Name+" "+string(m.Role))
			}
			return strings.Join(out, ", ")
		}
		if got := role(team.ID); got != "bob owner, ann editor" {
			t.Errorf("the members are %s", got)
		}
		if sp, err := w.Space(t.Context(), team.ID); err != nil || sp.Owner != bob.ID {
			t.Errorf("the owner is %+v, %v", sp, err)
		}
		for key, want := range map[string]space.Role{annKey: space.Editor, bobKey: space.Owner} {
			if p, err := w.Verify(t.Context(), key); err != nil || p.Role != want {
				t.Errorf("a key from before: %s, %v; want %s", p.Role, err, want)
			}
		}
		if p, err := w.Verify(t.Context(), annKey); err != nil || len(p.Scopes) != 2 {
			t.Errorf("the former owner's key may do %v, %v", p.Scopes, err)
		}
		if n := w.audited("space.give"); n != 1 {
			t.Errorf("the audit log has %d gifts", n)
		}
		wantCode(t, "the former owner is a member like others", w.RemoveMember(t.Context(), cli, team.ID, ann.ID), "")

		// A space of a removed owner gets an owner again. The removed user is not a member
		// of it.
		orphan, err := w.CreateSpace(t.Context(), cli, gil.ID, space.NewSpaceID(), "orphan")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.RemoveUser(t.Context(), cli, gil.ID); err != nil {
			t.Fatal(err)
		}
		if err := w.GiveSpace(t.Context(), cli, orphan.ID, cleo.ID); err != nil {
			t.Fatal(err)
		}
		if got := role(orphan.ID); got != "cleo owner" {
			t.Errorf("the members are %s", got)
		}
	})
}

// A space is given to two people at once, and one of them is made a reader meanwhile. In
// the end the space has one owner.
func TestGiftsAtOnceLeaveOneOwner(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, annSpace := w.user("ann", true)
		bob, _ := w.user("bob", false)
		cleo, _ := w.user("cleo", false)
		release := w.holdUsers(2)
		var wg sync.WaitGroup
		var errs [3]error
		wg.Go(func() { errs[0] = w.GiveSpace(t.Context(), cli, annSpace.ID, bob.ID) })
		wg.Go(func() { errs[1] = w.GiveSpace(t.Context(), cli, annSpace.ID, cleo.ID) })
		wg.Go(func() { errs[2] = w.AddMember(t.Context(), cli, annSpace.ID, bob.ID, space.Reader) })
		release()
		wg.Wait()
		sp, err := w.Space(t.Context(), annSpace.ID)
		if err != nil {
			t.Fatal(err)
		}
		members, err := w.Members(t.Context(), annSpace.ID)
		if err != nil {
			t.Fatal(err)
		}
		var owners []space.UserID
		for _, m := range members {
			if m.Role == space.Owner {
				owners = append(owners, m.User)
			}
		}
		if len(owners) != 1 || owners[0] != sp.Owner {
			t.Errorf("%v own it, and its row says %s; %v", owners, sp.Owner, errs)
		}
	})
}
