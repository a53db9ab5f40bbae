package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// owners is a world whose service deletes spaces.
type owners struct {
	*active
	before func() // called right before a deletion, if it is set
}

func newOwners(t *testing.T, with ...func(*web.Options)) *owners {
	t.Helper()
	o := &owners{active: newActive(t, web.LiveOptions{}, with...)}
	o.attach(func(r *service.Running) {
		r.DeleteSpace = func(ctx context.Context, by store.Actor, id space.SpaceID, owner space.UserID) (<-chan error, error) {
			if o.before != nil {
				o.before()
			}
			_, err := o.DeleteSpace(ctx, by, id, owner)
			return nil, err
		}
	})
	return o
}

// shows checks that a page contains texts.
func shows(t *testing.T, a answer, status int, words ...string) {
	t.Helper()
	want(t, "the page", a, status)
	if status != http.StatusSeeOther {
		checkPage(t, "the page", a)
	}
	for _, s := range words {
		if !strings.Contains(a.body, s) {
			t.Errorf("the page lacks %q in\n%.3000s", s, a.body)
		}
	}
}

// garden gives ada a second space, which bob is a member of.
func (a *active) garden() store.Space {
	a.t.Helper()
	sp := a.newSpace(a.ada, "garden")
	must(a.t, a.AddMember(a.t.Context(), cli, sp.ID, a.bob.ID, space.Editor))
	return sp
}

func TestDeleteASpace(t *testing.T) {
	a := newOwners(t)
	a.commit("Write a note", "knowledge/a.md", "A note")
	_, err := a.service.PublishSource(t.Context(), service.Person(a.ada), service.PublishSourceInput{
		Space: service.SpaceRef{ID: a.space.ID}, Source: space.Source{ID: "notes", SourceText: space.SourceText{Title: "Team <notes>"}, Dir: "knowledge", Everybody: true},
	})
	must(t, err)
	ada := a.as(a.ada)
	page := "/spaces/" + string(a.space.ID) + "/end"

	only := ada.get(page)
	shows(t, only, http.StatusOK, "This is your only space", "Create another space")
	lacks(t, "the page", only.body, "<form class=\"sheet\"")
	shows(t, ada.send(page, url.Values{"name": {a.space.Name}}), http.StatusConflict, "Nothing was deleted: this is your only space.")

	sp := a.garden()
	shows(t, ada.get("/spaces/"+string(a.space.ID)+"/danger"), http.StatusOK, `href="/spaces/`+string(a.space.ID)+`/end"`, `/give"`)
	first := ada.get(page)
	shows(t, first, http.StatusOK, "You cannot undo this", "only on this server", "/download/bundle", "It is your first space", "<bdi>garden</bdi>", "2 other people", "Team &lt;notes&gt;")
	end := "/spaces/" + string(sp.ID) + "/end"
	said := func(text string) {
		t.Helper()
		got := ada.get(end)
		shows(t, got, http.StatusOK, text, "1 other person")
		lacks(t, "the page", got.body, "It is your first space")
	}
	const address = "https://git.example.com/garden.git"
	a.connect(sp.ID, address)
	said("Everything that is saved is pushed to <bdi>" + address + "</bdi>")
	broken := a.breakPending(a.ada.ID)
	shows(t, ada.get(end), http.StatusOK, "Files that were not saved yet. The server cannot check now whether there are any.", "Everything that is saved is pushed")
	broken()
	_, err = a.git.Commit(t.Context(), sp.ID, space.ChangeSet{Changes: []space.Change{{Path: "b.md", Content: []byte("b")}}}, space.Meta{})
	must(t, err)
	said("1 change was not pushed")
	a.sync(sp.ID, errDown)
	said("1 change was not pushed")
	must(t, a.service.Remotes.Remove(t.Context(), sp.ID))

	page = "/spaces/" + string(sp.ID) + "/end"
	for _, wrong := range []string{"", "Garden", "gard", a.space.Name} {
		shows(t, ada.send(page, url.Values{"name": {wrong}}), http.StatusBadRequest, "Nothing was deleted", `aria-invalid="true"`)
	}
	if _, err := a.Space(t.Context(), sp.ID); err != nil {
		t.Fatal(err)
	}
	res := ada.send(page, url.Values{"name": {" garden "}})
	shows(t, res, http.StatusSeeOther)
	if to := res.location(); to != issuer+"/spaces?done=deleted" {
		t.Errorf("it leads to %s", to)
	}
	shows(t, ada.get("/spaces?done=deleted"), http.StatusOK, "The space was deleted.")
	for _, who := range []*browser{ada, a.as(a.bob)} {
		for _, at := range []string{"", "/end", "/give", "/files/", "/remote", "/activity", "/download/bundle", "/events", "/publish"} {
			if res := who.get("/spaces/" + string(sp.ID) + at); res.StatusCode != http.StatusNotFound {
				t.Errorf("%s is %d", at, res.StatusCode)
			}
		}
	}
	shows(t, ada.send(page, url.Values{"name": {"garden"}}), http.StatusNotFound)
}

func TestGiveASpace(t *testing.T) {
	a := newOwners(t)
	ada := a.as(a.ada)
	only := "/spaces/" + string(a.space.ID) + "/give"
	shows(t, ada.get(only), http.StatusOK, "This is your only space")
	shows(t, ada.send(only, url.Values{"to": {string(a.bob.ID)}, "sure": {"1"}}), http.StatusBadRequest, "this is your only space")

	alone := a.newSpace(a.ada, "alone")
	shows(t, ada.get("/spaces/"+string(alone.ID)+"/give"), http.StatusOK, "this one has no other")

	sp := a.garden()
	page := "/spaces/" + string(sp.ID) + "/give"
	a.connect(sp.ID, "https://git.example.com/garden.git")
	shows(t, ada.get(page), http.StatusOK, "you become an editor", "is disconnected", `value="`+string(a.bob.ID)+`"`)
	for _, tt := range []struct {
		name string
		form url.Values
		want string
	}{
		{"nobody chosen", url.Values{"sure": {"1"}}, "choose who"},
		{"not confirmed", url.Values{"to": {string(a.bob.ID)}}, "confirm"},
		{"ATTACK: a person who is not a member", url.Values{"to": {string(a.eve.ID)}, "sure": {"1"}}, "no longer a member"},
		{"the owner", url.Values{"to": {string(a.ada.ID)}, "sure": {"1"}}, "no longer a member"},
		{"ATTACK: no id", url.Values{"to": {"' OR 1=1"}, "sure": {"1"}}, "no longer a member"},
	} {
		shows(t, ada.send(page, tt.form), http.StatusBadRequest, "Nothing was changed", tt.want)
	}
	mine := a.newSpace(a.bob, "garden")
	form := url.Values{"to": {string(a.bob.ID)}, "sure": {"1"}}
	shows(t, ada.send(page, form), http.StatusBadRequest, "bob already has a space with this name")
	must(t, a.RenameSpace(t.Context(), cli, mine.ID, "bobs-garden"))
	res := ada.send(page, form)
	shows(t, res, http.StatusSeeOther)
	shows(t, ada.get(strings.TrimPrefix(res.location(), issuer)), http.StatusOK, "The space was transferred.")
	if got, err := a.Space(t.Context(), sp.ID); err != nil || got.Owner != a.bob.ID {
		t.Errorf("%+v, %v", got, err)
	}
	shows(t, ada.send(page, form), http.StatusForbidden)
	shows(t, a.as(a.bob).get(page), http.StatusOK)
}

// A person who loses ownership while their form is on its way changes nothing.
func TestTheOwnerChangesMeanwhile(t *testing.T) {
	a := newOwners(t)
	sp := a.garden()
	a.before = func() { must(t, a.GiveSpace(t.Context(), cli, sp.ID, a.bob.ID)) }
	shows(t, a.as(a.ada).send("/spaces/"+string(sp.ID)+"/end", url.Values{"name": {"garden"}}), http.StatusNotFound)
	if got, err := a.Space(t.Context(), sp.ID); err != nil || got.Owner != a.bob.ID {
		t.Errorf("%+v, %v", got, err)
	}
}
