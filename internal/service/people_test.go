package service_test

import (
	"context"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
)

// The spaces of a removed owner have no owner. The operator can give them to other people
// by ID.
func TestASpaceOfARemovedOwnerIsGivenAway(t *testing.T) {
	ctx, op := t.Context(), service.Operator()
	w := servicetest.New(t, time.Now)
	var ended []space.UserID
	var links []string
	w.Attach(service.Running{
		PagesURL:    "https://satchel.example",
		UserRemoved: func(_ context.Context, u space.UserID) { ended = append(ended, u) },
		LinkMade:    func(_ context.Context, link string) { links = append(links, link) },
	})
	gil, err := w.AddUser(ctx, op, service.AddUserInput{Name: "gil", Email: "gil@example.com"})
	if err != nil || gil.Email != "gil@example.com" {
		t.Fatalf("%+v, %v", gil, err)
	}
	if _, err := w.AddUser(ctx, op, service.AddUserInput{Name: "eve", Email: "GIL@example.com"}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a person with gil's address: %v", err)
	}
	if _, err := w.SetEmail(ctx, op, service.SetEmailInput{User: service.UserRef{Name: "owner"}, Email: "gil@example.com"}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("gil's address: %v", err)
	}
	link, err := w.CreateLoginLink(ctx, op, service.CreateLoginLinkInput{User: service.UserRef{Name: "gil"}})
	if err != nil || len(links) != 1 || link.URL != "https://satchel.example/signin/link/"+links[0] {
		t.Fatalf("%+v, %v", link, err)
	}
	remove := service.RemoveUserInput{User: service.UserRef{Name: "gil"}}
	left, err := w.RemoveUser(ctx, op, remove)
	if err != nil || left.Removed != "gil" || len(left.Spaces) != 1 || left.Spaces[0].Name != "gil" || len(ended) != 1 || ended[0] != gil.ID {
		t.Fatalf("%+v, %v; ended %v", left, err, ended)
	}
	if _, err := w.RemoveUser(ctx, op, remove); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("removed again: %v", err)
	}
	id := left.Spaces[0].ID
	all, err := w.ListSpaces(ctx, op, service.ListSpacesInput{})
	if err != nil || len(all) != 2 || all[0].ID != id || all[0].Owner != "" || all[0].OwnerLabel() != "nobody (was gil)" {
		t.Fatalf("%+v, %v", all, err)
	}
	give := func(name, to string) (service.SpaceInfo, error) {
		return w.GiveSpace(ctx, op, service.GiveSpaceInput{Space: service.SpaceRef{User: "owner", Name: name}, To: service.UserRef{Name: to}})
	}
	if _, err := give("gil/gil", "owner"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("by the name of a removed owner: %v", err)
	}
	if _, err := give(string(id), "gil"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("to a removed person: %v", err)
	}
	if got, err := give(string(id), "owner"); err != nil || got.ID != id || got.Owner != "owner" || got.OwnerWas != "" || got.Head == "" {
		t.Errorf("%+v, %v", got, err)
	}

	acts, err := w.ListAudit(ctx, op, service.ListAuditInput{Limit: 100, User: "gil", Act: "space.give"})
	if err != nil || len(acts) != 1 || acts[0].About != "owner/gil" || acts[0].Names[string(gil.ID)] != "gil (removed)" {
		t.Errorf("%+v, %v", acts, err)
	}
	acts, err = w.ListAudit(ctx, op, service.ListAuditInput{Limit: 100, Act: "link."})
	if err != nil || len(acts) != 1 {
		t.Fatalf("%+v, %v", acts, err)
	}
	if at, err := time.Parse(time.RFC3339, acts[0].Detail["expires"].(string)); err != nil || at.Before(acts[0].At) {
		t.Errorf("the link ends at %v, %v", at, err)
	}
}

// Attack: a person names other people's things. To them, these do not exist.
func TestWhatBelongsToOthersDoesNotExist(t *testing.T) {
	ctx := t.Context()
	w := servicetest.New(t, time.Now)
	eve, err := w.AddUser(ctx, service.Operator(), service.AddUserInput{Name: "eve"})
	if err != nil {
		t.Fatal(err)
	}
	owner, as := service.Person(w.Owner), service.Person(eve)
	ref := service.SpaceRef{ID: w.Space}
	key, err := w.CreateKey(ctx, owner, service.CreateKeyInput{Space: ref, Scopes: []space.Scope{space.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	invited, err := w.InviteToSpace(ctx, owner, service.InviteToSpaceInput{Space: ref, Role: space.Reader})
	if err != nil {
		t.Fatal(err)
	}
	_, session, err := w.Accounts.StartSession(ctx, store.NewSession{User: w.Owner.ID, Method: "link"})
	if err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func(service.Actor) error{
		"a session": func(a service.Actor) error {
			_, err := w.EndSession(ctx, a, service.EndSessionInput{ID: session.ID})
			return err
		},
		"an invitation": func(a service.Actor) error {
			_, err := w.RevokeInvitation(ctx, a, service.RevokeInvitationInput{ID: invited.ID})
			return err
		},
		"a key": func(a service.Actor) error {
			_, err := w.RevokeKey(ctx, a, service.RevokeKeyInput{ID: key.ID})
			return err
		},
		"a grant": func(a service.Actor) error {
			_, err := w.RevokeGrant(ctx, a, service.RevokeGrantInput{ID: key.ID})
			return err
		},
	} {
		if err := do(as); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s: %v", what, err)
		}
		if err := do(owner); err != nil {
			t.Errorf("%s of one's own: %v", what, err)
		}
	}
	if _, err := w.SetMember(ctx, owner, service.SetMemberInput{Space: ref, Member: service.UserRef{ID: eve.ID}, Role: space.Editor}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("makes somebody a member without an invitation: %v", err)
	}
	if n, err := w.EndSessions(ctx, as, service.EndSessionsInput{User: "owner"}); err != nil || n != 0 {
		t.Errorf("signs somebody else out of %d sessions, %v", n, err)
	}
	if keys, err := w.ListKeys(ctx, as, service.ListKeysInput{User: "owner"}); err != nil || len(keys) != 0 {
		t.Errorf("lists %+v, %v", keys, err)
	}
	if grants, err := w.ListGrants(ctx, as, service.ListGrantsInput{User: "owner"}); err != nil || len(grants) != 0 {
		t.Errorf("lists %+v, %v", grants, err)
	}
	if _, err := w.CreateKey(ctx, as, service.CreateKeyInput{Space: service.SpaceRef{ID: w.Space, User: "owner"}, Scopes: []space.Scope{space.ScopeRead}}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("makes a key for a space of somebody else: %v", err)
	}
}
