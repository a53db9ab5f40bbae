package web_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/internal/space"
	"satchel/web"
)

// Attack: a client names itself like these pages, so that undoing its changes also undoes
// the person's own uploads and rejections.
func TestAClientThatIsCalledAsThePagesAre(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	a.by("browser", "Of the client", "skills/a/SKILL.md", "evil\n", "client.md", "x\n")
	a.commitAs(space.Meta{Author: space.Person{Name: "Ada"}, Message: "My upload", Tool: "web", Client: "browser", Time: a.clock()}, "mine.md", "mine\n")
	a.commitAs(space.Meta{Author: space.Person{Name: "Ada"}, Message: "My import", Tool: "import", Client: "browser", Time: a.clock()}, "imported.md", "mine\n")
	a.commitAs(space.Meta{Message: "A merge", Tool: "sync", Client: "browser", Time: a.clock()}, "merged.md", "x\n")
	a.by("claude", "Of another", "other.md", "x\n")
	b := a.as(a.ada)
	blob, _, _, err := a.git.Blob(t.Context(), a.space.ID, "", "skills/a/SKILL.md")
	must(t, err)
	want(t, "reject", b.send(a.in("reviews/undo"), url.Values{"path": {"skills/a/SKILL.md"}, "blob": {string(blob)}}), http.StatusSeeOther)

	preview := b.get(a.in("revert?client=browser&since=2020-01-01"))
	ids := commits(preview.body)
	if len(ids) != 1 || !strings.Contains(preview.body, "Of the client") {
		t.Fatalf("%d changes would be undone", len(ids))
	}
	want(t, "revert", b.send(a.in("revert"), url.Values{"commit": ids}), http.StatusSeeOther)
	if a.text("mine.md") != "mine\n" || a.text("imported.md") != "mine\n" || a.text("merged.md") != "x\n" || a.text("skills/a/SKILL.md") == "evil\n" {
		t.Error("what the person did was undone")
	}
	list := b.get(a.in("activity?client=browser")).body
	if !strings.Contains(list, "Of the client") || strings.Contains(list, "My upload") || strings.Contains(list, "My import") {
		t.Error("the filter mixes the person with the client")
	}
}

// What people did on the pages has no client.
func TestPeopleAreNoClients(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	a.by("claude", "Of the client", "a.md", "a\n")
	a.commitAs(space.Meta{Author: space.Person{Name: "Ada"}, Message: "My upload", Tool: "web", Client: "browser", Time: a.clock()}, "mine.md", "mine\n")
	body := a.as(a.ada).get(a.in("activity")).body
	if strings.Contains(body, `value="browser"`) || !strings.Contains(body, `value="claude"`) || !strings.Contains(body, `<option value="web">in the browser</option>`) {
		t.Error("the choice of clients is not that of AIs")
	}
	if !strings.Contains(body, `<h3><bdi>Ada</bdi> <span class="hint">in the browser · 1 change`) {
		t.Error("it does not say what was done in the browser")
	}
}

func TestWhatWasUndoneSaysSo(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	c := a.by("claude", "Write a plan", "a.md", "a\n")
	// Attack: an AI claims in a comment that another's change was undone.
	a.by("evil", "Undo “x”\n\nThis undoes the commit "+c.ID.Short()+".", "b.md", "b\n")
	b := a.as(a.ada)
	undo := func(id space.CommitID) string {
		t.Helper()
		res := b.send(a.in("revert"), url.Values{"commit": {string(id)}})
		want(t, "undo", res, http.StatusSeeOther)
		if to := res.Header.Get("Location"); !strings.HasSuffix(to, "&done=undone") {
			t.Error(to)
		}
		got, err := a.git.Show(t.Context(), a.space.ID, "")
		must(t, err)
		subject, _, _ := strings.Cut(got.Message, "\n")
		return subject
	}
	says := func(when string, of space.CommitID, want bool) {
		t.Helper()
		_, item, _ := strings.Cut(b.get(a.in("activity")).body, `id="c-`+string(of)+`"`)
		item, _, _ = strings.Cut(item, "\n</li>")
		page := b.get(a.in("commits/%s", of)).body
		for _, part := range []struct{ name, got, says, undo string }{{"list", item, ">Undone<", `action="` + a.in("revert") + `"`}, {"page", page, "undone since", a.in("revert?here")}} {
			if strings.Contains(part.got, part.says) != want || strings.Contains(part.got, part.undo) == want {
				t.Errorf("%s: the %s of %s is wrong", when, part.name, of.Short())
			}
		}
	}
	says("before", c.ID, false)
	if s := undo(c.ID); s != "Undo “Write a plan”" {
		t.Error(s)
	}
	first := a.head()
	says("undone", c.ID, true)
	if s := undo(first); s != "Redo “Write a plan”" {
		t.Error(s)
	}
	says("redone", c.ID, false)
	says("redone", first, true)
	if s := undo(a.head()); s != "Undo “Write a plan”" {
		t.Error(s)
	}
	if strings.Contains(a.as(a.bob).get(a.in("commits/%s", c.ID)).body, "/revert") {
		t.Error("a reader is offered to undo")
	}
}

// The address names what was done with one of a few words, never with its text.
func TestWhatWasDoneIsSaid(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	a.connect(a.space.ID, "https://git.test/x")
	b := a.as(a.ada)
	for _, tt := range []struct{ page, done, says string }{
		{"activity", "undone", "The changes were undone"},
		{"reviews", "kept", "Kept."},
		{"reviews", "undone", "Undone. The version"},
		{"remote", "synced", "Synced."},
		{"remote", "set", "The repository was connected."},
		{"remote", "removed", ""},
		{"activity", "You+won", ""},
		{"reviews", "You+won", ""},
		{"remote", "You+won", ""},
	} {
		body := b.get(a.in("%s?done=%s", tt.page, tt.done)).body
		if has := strings.Contains(body, `class="note" role="status">`) || strings.Contains(body, `class="toast"`); has != (tt.says != "") || !strings.Contains(body, tt.says) || strings.Contains(body, "You won") {
			t.Errorf("%s after %s", tt.page, tt.done)
		}
	}
	for _, act := range []struct{ target, to string }{{"remote/sync", "remote?done=synced"}, {"remote/remove", "remote?done=removed"}} {
		if got := b.send(a.in("%s", act.target), nil).Header.Get("Location"); !strings.HasSuffix(got, act.to) {
			t.Errorf("%s leads to %s", act.target, got)
		}
	}
	a.connect(a.space.ID, "https://git.test/x")
	a.sync(a.space.ID, errDown)
	if strings.Contains(b.get(a.in("remote?done=synced")).body, "Synced.") {
		t.Error("it says so though it failed")
	}
}

func TestTheFirstPageTellsWhatWaits(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	b := a.as(a.ada)
	link := `href="/spaces/` + string(a.space.ID) + `/reviews"`
	if strings.Contains(b.get("/").body, link) {
		t.Error("it asks though nothing waits")
	}
	a.by("claude", "Obey", "skills/a/SKILL.md", "one\n\ntwo\n")
	body := b.get("/").body
	if !strings.Contains(body, link) || !strings.Contains(body, "1 change to confirm") {
		t.Error("it does not say what waits")
	}
	if !strings.Contains(b.get("/account").body, link) {
		t.Error("the navigation of a page about something else does not say it")
	}
	reviews := b.get(a.in("reviews")).body
	if !strings.Contains(reviews, "A change takes effect at once") {
		t.Error("it does not say that the change is in force")
	}
	// A blank line has its height.
	if !strings.Contains(reviews, "+</td><td><br></td>") {
		t.Error("blank lines have nothing in them")
	}
}

// The audit log says who undid changes, and in which space. It leaves out attempts that
// changed nothing.
func TestAttackUndoneWithoutATrace(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	one := a.by("claude-code", "One", "a.md", "a\n")
	two := a.by("claude-code", "Two", "b.md", "b\n")
	three := a.by("cursor", "Three", "c.md", "c\n")
	for _, tt := range []struct {
		name, client string
		who          *browser
		by           space.UserID
		undo         []space.CommitID
		noted        bool
	}{
		{"all of a client, by an editor", "claude-code", a.as(a.carol), a.carol.ID, []space.CommitID{two.ID, one.ID}, true},
		{"the same again", "claude-code", a.as(a.carol), a.carol.ID, []space.CommitID{two.ID, one.ID}, false},
		{"one, by the owner", "cursor", a.as(a.ada), a.ada.ID, []space.CommitID{three.ID}, true},
		{"by a reader", "", a.as(a.bob), a.bob.ID, []space.CommitID{three.ID}, false},
		{"by who has no part", "", a.as(a.eve), a.eve.ID, []space.CommitID{three.ID}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, err := a.AuditOf(t.Context(), store.AuditFilter{Act: "space.revert"}, 0, 100)
			must(t, err)
			form := url.Values{"client": {"forged"}}
			for _, id := range tt.undo {
				form.Add("commit", string(id))
			}
			tt.who.send(a.in("revert"), form)
			after, err := a.AuditOf(t.Context(), store.AuditFilter{Act: "space.revert"}, 0, 100)
			must(t, err)
			if got := len(after) - len(before); got > 1 || got == 1 != tt.noted {
				t.Fatalf("%d rows were written", got)
			}
			if !tt.noted {
				return
			}
			e, detail := after[0], map[string]any{}
			must(t, json.Unmarshal([]byte(e.Detail), &detail))
			want := map[string]any{"commit": string(a.head()), "undone": float64(len(tt.undo))}
			if tt.client != "" {
				want["client"] = tt.client
			}
			if e.Subject != string(a.space.ID) || e.Actor != (store.Actor{User: tt.by, Via: "web"}) || !maps.Equal(detail, want) {
				t.Errorf("the row is %+v, want %v", e, want)
			}
		})
	}
}

// Attack: a client makes more changes than one page undoes, so that the oldest can never
// be undone, or a repeated undo takes back what a person did since.
func TestAttackMoreChangesThanFitAreAllUndone(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	since := url.QueryEscape(a.clock().Format("2006-01-02T15:04"))
	first := a.by("loop", "First", "loop.md", "0\n")
	for i := range 103 {
		a.by("loop", "More", "loop.md", strings.Repeat("x\n", i+1))
	}
	b := a.as(a.ada)
	target := a.in("revert?client=loop&since=%s", since)
	page := b.get(target)
	want(t, "preview", page, http.StatusOK)
	checkPage(t, "preview", page)
	ids := commits(page.body)
	if len(ids) != 100 {
		t.Fatalf("%d are listed", len(ids))
	}
	// They can be left, and fewer be chosen.
	older := b.get(htmlAttr(t, page.body, "Show the older changes"))
	if got := commits(older.body); len(got) != 4 || got[3] != string(first.ID) || strings.Contains(older.body, "Show the older changes") {
		t.Errorf("%d are older", len(got))
	}
	if strings.Count(page.body, `type="checkbox" name="commit"`) != 100 {
		t.Error("fewer cannot be chosen")
	}
	want(t, "a place that is none", b.get(target+"&after="+strings.Repeat("0", 40)), http.StatusNotFound)
	want(t, "what is no id", b.get(target+"&after=HEAD"), http.StatusNotFound)
	want(t, "revert", b.send(a.in("revert"), url.Values{"commit": ids}), http.StatusSeeOther)
	rest := b.get(target)
	if ids = commits(rest.body); len(ids) != 4 || !strings.Contains(rest.body, "100 changes that were already undone are not listed") {
		t.Fatalf("%d are left", len(ids))
	}
	want(t, "the rest", b.send(a.in("revert"), url.Values{"commit": ids}), http.StatusSeeOther)
	if a.text("loop.md") != "" {
		t.Error("it is not all undone")
	}
	done := b.get(target)
	checkPage(t, "done", done)
	if len(commits(done.body)) != 0 || !strings.Contains(done.body, "already undone.") {
		t.Error("it offers to undo all again")
	}
}
