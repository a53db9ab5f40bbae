package admin_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"satchel/internal/admin"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// TestOwnershipBothWays removes an owner, gives their space to somebody and reads
// about it, directly and over the socket.
func TestOwnershipBothWays(t *testing.T) {
	for name, of := range map[string]func(t *testing.T, l *admin.Local) admin.Service{
		"directly":        func(_ *testing.T, l *admin.Local) admin.Service { return l },
		"over the socket": func(t *testing.T, l *admin.Local) admin.Service { return over(t, l, slog.New(slog.DiscardHandler)) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			l := newLocal(t)
			var ended []space.UserID
			l.Ended = func(_ context.Context, u space.UserID) { ended = append(ended, u) }
			l.Pages.LinkLifetime = time.Minute
			s := of(t, l)
			if _, err := s.AddUser(ctx, "ann", true); err != nil {
				t.Fatal(err)
			}
			gil, err := s.AddPerson(ctx, admin.NewPerson{Name: "gil", Email: "gil@example.com"})
			if err != nil || gil.Email != "gil@example.com" || gil.State != admin.StateActive {
				t.Fatalf("%+v, %v", gil, err)
			}
			if _, err := s.AddPerson(ctx, admin.NewPerson{Name: "eve", Email: "GIL@example.com"}); fault.CodeOf(err) != fault.Conflict {
				t.Errorf("a person with gil's address: %v", err)
			}
			if err := s.SetEmail(ctx, admin.EmailRequest{Name: "ann", Email: "gil@example.com"}); fault.CodeOf(err) != fault.Conflict {
				t.Errorf("gil's address: %v", err)
			}
			if _, err := s.LoginLink(ctx, "gil"); err != nil {
				t.Fatal(err)
			}
			left, err := s.PartUser(ctx, "gil")
			if err != nil || left.Removed != "gil" || len(left.Spaces) != 1 || left.Spaces[0].Name != "gil" || len(ended) != 1 || ended[0] != gil.ID {
				t.Fatalf("%+v, %v; ended %v", left, err, ended)
			}
			if _, err := s.PartUser(ctx, "gil"); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("removed again: %v", err)
			}
			id := left.Spaces[0].ID
			all, err := s.Spaces(ctx, "")
			if err != nil || len(all) != 2 || all[1].ID != id || all[1].Owner != "" || all[1].OwnerLabel() != "nobody (was gil)" {
				t.Fatalf("%+v, %v", all, err)
			}
			give := func(user, name, to string) (admin.SpaceInfo, error) {
				return s.GiveSpace(ctx, admin.GiveRequest{SpaceRequest: admin.SpaceRequest{User: user, Name: name}, To: to})
			}
			if _, err := give("ann", "gil/gil", "ann"); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("by the name of who was removed: %v", err)
			}
			if _, err := give("", string(id), "gil"); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("to who was removed: %v", err)
			}
			if got, err := give("", string(id), "ann"); err != nil || got.ID != id || got.Owner != "ann" || got.OwnerWas != "" || got.Head == "" {
				t.Errorf("%+v, %v", got, err)
			}

			acts, err := s.Audit(ctx, admin.AuditRequest{Limit: 100, User: "gil", Act: "space.give"})
			if err != nil || len(acts) != 1 || acts[0].About != "ann/gil" || acts[0].Names[string(gil.ID)] != "gil (removed)" {
				t.Errorf("%+v, %v", acts, err)
			}
			acts, err = s.Audit(ctx, admin.AuditRequest{Limit: 100, Act: "link."})
			if err != nil || len(acts) != 1 {
				t.Fatalf("%+v, %v", acts, err)
			}
			if at, err := time.Parse(time.RFC3339, acts[0].Detail["expires"].(string)); err != nil || at.Before(acts[0].At) {
				t.Errorf("the link ends at %v, %v", at, err)
			}
		})
	}
}
