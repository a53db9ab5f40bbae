package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// regionOf returns the part of a page from an id to the end of its section.
func regionOf(t *testing.T, a answer, id string) string {
	t.Helper()
	_, part, ok := strings.Cut(a.body, `id="`+id+`"`)
	if !ok {
		t.Fatalf("the page has no %s", id)
	}
	part, _, _ = strings.Cut(part, "</section>")
	return part
}

// Facts that need a decision are above the others, by what is wrong with them.
func TestWhatToLookAtComesFirst(t *testing.T) {
	h := newHeld(t, append(memories(), "memory/project/ann.md", "---\nvalue: Ann is a project\n---\n")...)
	a := h.as(h.ada).get(h.in("memory"))
	for id, value := range map[string]string{"against": "Ann is a project", "over": "Visits on Monday"} {
		part := regionOf(t, a, id)
		if !strings.Contains(part, value) || !strings.Contains(part, h.in("memory/confirm")) || !strings.Contains(part, h.in("memory/forget")) {
			t.Errorf("%s lacks %q or its forms", id, value)
		}
	}
	if strings.Count(a.body, "Ann is a project") != 1 {
		t.Error("a fact to look at is listed again")
	}
	if first, table := strings.Index(a.body, `id="look-at"`), strings.Index(a.body, `id="type-0"`); first < 0 || first > table {
		t.Error("what to look at is not first")
	}
	if body := h.as(h.bob).get(h.in("memory")).body; strings.Contains(body, h.in("memory/confirm")) {
		t.Error("a reader is offered to decide")
	}
	if body := h.as(h.ada).get(h.in("memory?q=tea")).body; strings.Contains(body, `id="look-at"`) {
		t.Error("a search is not about what it finds")
	}
}

// The facts of a group are asked about together or not at all.
func TestAFactIsAskedAboutInItsGroup(t *testing.T) {
	var files []string
	names := []string{"apple", "boat", "carrot", "delta"}
	for _, n := range names {
		files = append(files, "memory/person/"+n+".md", "---\nvalue: "+n+" one\n---\n", "memory/project/"+n+".md", "---\nvalue: "+n+" two\n---\n")
	}
	h := newHeld(t, files...)
	part := regionOf(t, h.as(h.ada).get(h.in("memory")), "against")
	groups := 0
	for _, n := range names {
		one, two := strings.Contains(part, n+" one"), strings.Contains(part, n+" two")
		if one != two {
			t.Errorf("%s: one is asked about: %t, two: %t", n, one, two)
		}
		if one {
			groups++
		}
	}
	if groups != 3 {
		t.Errorf("%d groups are asked about", groups)
	}
}

// The row of a fact opens in the list. Saving it returns to the list, which offers to undo.
func TestAFactIsCorrectedInItsRow(t *testing.T) {
	h := newHeld(t, memories()...)
	b := h.as(h.ada)
	a := b.get(h.in("memory?q=ann&edit=person%%2Fann"))
	want(t, "the row", a, http.StatusOK)
	checkPage(t, "the row", a)
	form := fields(a.body)
	for _, field := range []string{"\nAnn is the boss</textarea>", `<option value="" selected>Certain</option>`, `type="date" value="2027-01-01"`} {
		if !strings.Contains(a.body, field) {
			t.Errorf("the row lacks %q", field)
		}
	}
	if back := form.Get("back"); back != "?q=ann" {
		t.Errorf("the row leads back to %q", back)
	}
	form.Set("value", "Ann leads the team")
	for _, wrong := range []string{"2", "-1", "NaN", "sure"} {
		form.Set("confidence", wrong)
		a := b.send(h.in("memory/fact/person/ann"), form)
		want(t, "confidence "+wrong, a, http.StatusUnprocessableEntity)
		if !strings.Contains(a.body, "Ann leads the team") || !strings.Contains(a.body, `id="edit"`) {
			t.Errorf("%s: what was typed is gone", wrong)
		}
	}
	h.holds("memory/person/ann.md", annFact)
	form.Set("confidence", "0.8")
	form.Set("expires", "2028-01-01")
	a = b.send(h.in("memory/fact/person/ann"), form)
	want(t, "save", a, http.StatusSeeOther)
	if got, _ := h.read("memory/person/ann.md"); !strings.Contains(got, "value: Ann leads the team\n") || !strings.Contains(got, "confidence: 0.8\n") || !strings.Contains(got, "expires: 2028-01-01\n") {
		t.Errorf("the fact is %s", got)
	}
	a = b.get(strings.TrimPrefix(a.location(), issuer))
	if !strings.Contains(a.body, "Saved: “Ann leads the team”.") || !strings.Contains(a.body, "Ann leads the team") {
		t.Error("the list does not confirm it")
	}
	undo := url.Values{"commit": {string(h.head())}}
	a = b.send(h.in("memory/undo"), undo)
	want(t, "undo", a, http.StatusSeeOther)
	h.holds("memory/person/ann.md", annFact)
	// The undo is undone.
	want(t, "undo the undo", b.send(h.in("memory/undo"), url.Values{"commit": {string(h.head())}}), http.StatusSeeOther)
	if got, _ := h.read("memory/person/ann.md"); !strings.Contains(got, "Ann leads the team") {
		t.Errorf("the fact is %s", got)
	}
}

func TestForgettingIsUndone(t *testing.T) {
	h := newHeld(t, memories()...)
	b := h.as(h.ada)
	a := b.send(h.in("memory/forget"), fields(b.get(h.in("memory/fact/person/ann")).body))
	want(t, "forget", a, http.StatusSeeOther)
	h.lacks("memory/person/ann.md")
	shown := b.get(strings.TrimPrefix(a.location(), issuer))
	if !strings.Contains(shown.body, "Forgotten: person/ann.") || !strings.Contains(shown.body, `value="`+string(h.head())+`"`) {
		t.Error("the list does not offer to undo it")
	}
	want(t, "undo", b.send(h.in("memory/undo"), url.Values{"commit": {string(h.head())}}), http.StatusSeeOther)
	h.holds("memory/person/ann.md", annFact)
}

// Attack: a link that somebody sends offers to undo a change of somebody else.
func TestAttackALinkOffersNoOtherChange(t *testing.T) {
	h := newHeld(t, memories()...)
	b := h.as(h.ada)
	for name, id := range map[string]string{"of git": string(h.head()), "none": strings.Repeat("0", 40), "no id": "HEAD"} {
		a := b.get(h.in("memory?did=saved&commit=%s", id))
		want(t, name, a, http.StatusOK)
		if strings.Contains(a.body, h.in("memory/undo")) {
			t.Errorf("%s: it is offered", name)
		}
	}
}

// A damaged or misplaced file is repaired with one button, and the repair can be undone.
func TestRepairByPages(t *testing.T) {
	h := newHeld(t, memories()...)
	b := h.as(h.ada)
	part := regionOf(t, b.get(h.in("memory")), "damaged")
	if strings.Count(part, `action="`+h.in("memory/repair")+`"`) != 5 {
		t.Errorf("not every file has its button: %s", part)
	}
	repair := func(path string) answer { return b.send(h.in("memory/repair"), url.Values{"path": {path}}) }
	a := repair("memory/loose.md")
	want(t, "repair", a, http.StatusSeeOther)
	h.lacks("memory/loose.md")
	if got, _ := h.read("memory/note/loose.md"); !strings.Contains(got, "value: no fact\n") {
		t.Errorf("it became %q", got)
	}
	if shown := b.get(strings.TrimPrefix(a.location(), issuer)); !strings.Contains(shown.body, "Repaired: “no fact”") {
		t.Error("the list does not confirm it")
	}
	want(t, "undo", b.send(h.in("memory/undo"), url.Values{"commit": {string(h.head())}}), http.StatusSeeOther)
	h.holds("memory/loose.md", "no fact")
	h.lacks("memory/note/loose.md")
	head := h.head()
	for _, p := range []string{"memory/person/ann.md", "../x", "", "knowledge/a.md"} {
		if a := repair(p); a.StatusCode < 400 || a.StatusCode >= 500 {
			t.Errorf("repair %q: %d", p, a.StatusCode)
		}
	}
	want(t, "attack: repair what was not seen", b.send(h.in("memory/repair"), url.Values{"path": {"memory/loose.md"}, "base": {strings.Repeat("0", 40)}}), http.StatusConflict)
	if h.head() != head {
		t.Error("a refused repair changed the space")
	}
}

// A memory without facts says what will be here, and leads to the one thing to do.
func TestAnEmptyMemoryLeadsOn(t *testing.T) {
	h := newHeld(t, "knowledge/a.md", "a")
	if body := h.as(h.ada).get(h.in("memory")).body; !strings.Contains(body, `class="empty"`) || strings.Count(body, h.in("memory/new")) != 1 {
		t.Error("the owner is not led to the first fact")
	}
	if body := h.as(h.bob).get(h.in("memory")).body; !strings.Contains(body, `class="empty"`) || strings.Contains(body, h.in("memory/new")) {
		t.Error("a reader is led to what they cannot do")
	}
}
