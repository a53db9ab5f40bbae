package store_test

import (
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

func TestRenameSpace(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ada, home := w.user("ada", true)
		w.user("bob", false)
		team, err := w.CreateSpace(t.Context(), cli, ada.ID, space.NewSpaceID(), "team")
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			name, to string
			id       space.SpaceID
			code     fault.Code
		}{
			{"the same name", "team", team.ID, ""},
			{"another", "crew", team.ID, ""},
			{"one that another person's space has", "bob", team.ID, ""},
			{"one of the owner's own", home.Name, team.ID, fault.Conflict},
			{"none", "", team.ID, fault.Invalid},
			{"a path", "../x", team.ID, fault.Invalid},
			{"two words", "a b", team.ID, fault.Invalid},
			{"of no space", "x", space.NewSpaceID(), fault.NotFound},
			{"of what is no id", "x", "' OR 1=1 --", fault.NotFound},
		} {
			if err := w.RenameSpace(t.Context(), cli, tt.id, tt.to); fault.CodeOf(err) != tt.code {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		if sp, err := w.Space(t.Context(), team.ID); err != nil || sp.Name != "bob" {
			t.Errorf("%+v %v", sp, err)
		}
		if n := w.audited("space.rename"); n != 2 {
			t.Errorf("%d renames are in the audit log, and not 2", n)
		}
	})
}
