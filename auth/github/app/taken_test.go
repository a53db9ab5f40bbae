package app_test

import (
	"testing"

	"satchel/auth"
	"satchel/internal/fault"
)

// Attack: mallory is a collaborator of ada's repository, and connects it to her own space
// beside ann's.
func TestAttackRepositoryOfAnotherSpace(t *testing.T) {
	w, _ := withApp(t)
	w.gh.SetPermission("ada/notes", "mallory", "write")
	w.connect(w.notes)
	f := w.find("mallory")
	_, err := w.Link(t.Context(), w.eve.ID, w.eveSpace, f, w.notes)
	wantCode(t, "eve connects it", err, fault.Conflict)
	w.unlinked(w.eveSpace)
	if taken, err := w.Taken(t.Context(), w.eveSpace); err != nil || len(taken) != 1 || taken[w.notes] != w.annSpace {
		t.Errorf("taken for eve: %v, %v", taken, err)
	}
	if taken, err := w.Taken(t.Context(), w.annSpace); err != nil || len(taken) != 0 {
		t.Errorf("taken for ann, whose it is: %v, %v", taken, err)
	}
	if l, ok, err := w.Linked(t.Context(), w.annSpace); err != nil || !ok || l.State != auth.LinkConnected {
		t.Errorf("ann's: %+v, %v, %v", l, ok, err)
	}
}

// Attack: mallory was a collaborator, and connected the repository. When ada connects it,
// the server asks GitHub again, and ends mallory's connection.
func TestAttackRepositoryKeptByWhoLostIt(t *testing.T) {
	w, _ := withApp(t)
	w.gh.SetPermission("ada/notes", "mallory", "write")
	if _, err := w.Link(t.Context(), w.eve.ID, w.eveSpace, w.find("mallory"), w.notes); err != nil {
		t.Fatal(err)
	}
	_, err := w.Link(t.Context(), w.ann.ID, w.annSpace, w.find("ada"), w.notes)
	wantCode(t, "while she may push", err, fault.Conflict)
	w.gh.SetPermission("ada/notes", "mallory", "")
	w.connect(w.notes)
	w.unlinked(w.eveSpace)
}
