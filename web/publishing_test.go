package web_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/internal/space"
)

func contains(t *testing.T, what, body string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(body, w) {
			t.Errorf("%s lacks %q", what, w)
		}
	}
}

func lacks(t *testing.T, what, body string, nots ...string) {
	t.Helper()
	for _, n := range nots {
		if strings.Contains(body, n) {
			t.Errorf("%s has %q", what, n)
		}
	}
}

var shelved = []string{
	"knowledge/README.md", "# Team\n\nSee [how](sub/how.md).\n", "knowledge/sub/how.md", "how we work\n", "knowledge/data.txt", "plain <b>text</b>\n",
	"memory/person/name.md", "her-own-words\n", "secret.txt", "top-secret-text\n",
}

func TestPublishingFromChoiceToTakingItBack(t *testing.T) {
	s := newShelf(t, shelved...)
	ada, eve := s.as(s.ada), s.as(s.eve)
	at := s.in("publish")

	a := ada.get(at)
	want(t, "the page", a, http.StatusOK)
	contains(t, "the page", a.body, "Nothing of this space is published", `<option value="knowledge" selected>knowledge/ (3 files)`, `<option value="knowledge/sub">`, `<option value="memory">`, `<option value="">`)
	a = ada.get(at + "?dir=knowledge")
	want(t, "the preview", a, http.StatusOK)
	contains(t, "the preview", a.body, "3 files", "README.md", "sub/how.md", `value="ada-knowledge"`)
	lacks(t, "the preview", a.body, "secret.txt", "what your AIs remember")
	contains(t, "the preview", a.body, `value="all" checked`)
	contains(t, "a preview of everything", ada.get(at+"?dir=").body, "what your AIs remember about you", `value="named" checked`)

	a = ada.send(at, url.Values{"dir": {"knowledge"}, "source": {"Not A Name"}, "title": {"Mine"}, "audience": {"all"}})
	want(t, "a bad name", a, http.StatusBadRequest)
	contains(t, "what was written", a.body, `value="Not A Name"`, `value="Mine"`, `aria-invalid="true"`)
	want(t, "memory without a word", ada.send(at, url.Values{"dir": {"memory"}, "source": {"me"}, "audience": {"all"}}), http.StatusBadRequest)
	want(t, "a reader whom there is not", ada.send(at, url.Values{"dir": {"knowledge"}, "source": {"notes"}, "audience": {"named"}, "readers": {"nobody"}}), http.StatusBadRequest)
	lacks(t, "what eve may read", eve.get("/library").body, `href="/library/docs/`)

	want(t, "publishing", ada.send(at, url.Values{"dir": {"knowledge"}, "source": {"notes"}, "title": {"Team <i>notes</i>"}, "description": {"How & why"}, "audience": {"all"}}), http.StatusSeeOther)
	contains(t, "what is published", ada.get(at).body, "Team &lt;i&gt;notes", "everybody on this server", `/library/docs/notes/`)
	a = eve.get("/library")
	contains(t, "eve's library", a.body, "<code>notes</code>", "Team &lt;i&gt;notes", "How &amp; why", "from <bdi>ada</bdi>", "3 files")
	lacks(t, "eve's library", a.body, "<i>", ">yours<")
	contains(t, "ada's library", ada.get("/library").body, ">yours<")
	a = eve.get("/library/docs/notes/")
	want(t, "the source", a, http.StatusOK)
	contains(t, "the source", a.body, `href="/library/docs/notes/sub/"`, `href="/library/docs/notes/sub/how.md"`, "<h1>Team &lt;i&gt;notes")
	contains(t, "a page", eve.get("/library/docs/notes/README.md").body, `<div class="text">`)
	s.commit("Title it", "knowledge/titled.md", "---\ntitle: Twice\ndescription: Two <i>\nowner: ada\n---\n\n# Twice\n")
	want(t, "an update", eve.send("/library/sync/notes", nil), http.StatusSeeOther)
	titled := eve.get("/library/docs/notes/titled.md").body
	contains(t, "a page with front matter", titled, "<bdi>owner</bdi>")
	lacks(t, "a page with a title", titled, "<bdi>title</bdi>", "<bdi>description</bdi>")
	contains(t, "a page with a title", titled, "<h1>Twice</h1>", "<li><bdi>titled.md</bdi></li>", `<p class="lead"><bdi>Two &lt;i&gt;</bdi></p>`, `class="paper headed"`)
	for text, heading := range map[string]string{
		"# One\n\ntext\n":                      `<h1>One</h1>`,
		"---\ntitle: A\n---\n\n# B\n":          `<h1>A</h1>`,
		"# One\n\n# Two\n":                     `<h1>titled.md</h1>`,
		"text\n\n# One\n":                      `<h1>titled.md</h1>`,
		"---\ntitle: [a, b]\n---\n\ntext\n":    `<h1>titled.md</h1>`,
		"---\ntitle: <script>x\n---\n\ntext\n": `<h1>&lt;script&gt;x</h1>`,
	} {
		s.commit("Title it", "knowledge/titled.md", text)
		want(t, "an update", eve.send("/library/sync/notes", nil), http.StatusSeeOther)
		body := eve.get("/library/docs/notes/titled.md").body
		contains(t, text, body, heading)
		if strings.Contains(body, "paper headed") != (heading == `<h1>One</h1>`) {
			t.Errorf("%q: its heading is left out, or shown twice", text)
		}
	}
	contains(t, "a text", eve.get("/library/docs/notes/data.txt").body, "plain &lt;b&gt;")
	raw := eve.get("/library/raw/notes/data.txt")
	if raw.body != "plain <b>text</b>\n" || !strings.HasPrefix(raw.Header.Get("Content-Type"), "text/plain") || !strings.Contains(raw.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("the raw file: %q %v", raw.body, raw.Header)
	}

	s.commit("Change it", "knowledge/data.txt", "newer\n")
	want(t, "update now", eve.send("/library/sync/notes", nil), http.StatusSeeOther)
	contains(t, "the newer text", eve.get("/library/docs/notes/data.txt").body, "newer")

	contains(t, "the form", ada.get(at+"?source=notes").body, `value="How &amp; why"`, "Change the source", `name="change" value="yes"`)
	want(t, "narrowing", ada.send(at, url.Values{"dir": {"knowledge"}, "source": {"notes"}, "change": {"yes"}, "audience": {"named"}, "readers": {"bob"}}), http.StatusSeeOther)
	want(t, "eve, who is out", eve.get("/library/docs/notes/"), http.StatusNotFound)
	want(t, "bob, who is in", s.as(s.bob).get("/library/docs/notes/"), http.StatusOK)
	want(t, "unpublishing", ada.send(at+"/notes/end", nil), http.StatusSeeOther)
	want(t, "bob, after that", s.as(s.bob).get("/library/docs/notes/"), http.StatusNotFound)
	want(t, "ada, after that", ada.get("/library/docs/notes/README.md"), http.StatusNotFound)
}

// Two directories with similar names: the second takes nothing from the first.
func TestPublishingASecondDirectoryOfTheSameName(t *testing.T) {
	s := newShelf(t, append(shelved, "team/plan.md", "ours\n", "knowledge/team/how.md", "how\n", "resources/team/x.md", "x\n")...)
	ada, at := s.as(s.ada), s.in("publish")
	contains(t, "the first", ada.get(at+"?dir=team").body, `value="ada-team"`)
	want(t, "publishing the first", ada.send(at, url.Values{"dir": {"team"}, "source": {"ada-team"}, "audience": {"named"}, "readers": {"bob"}}), http.StatusSeeOther)
	contains(t, "the name for the second", ada.get(at+"?dir=knowledge/team").body, `value="ada-knowledge-team"`)
	contains(t, "the name for the first again", ada.get(at+"?dir=team").body, `value="ada-team-2"`)
	for dir, name := range map[string]string{"knowledge/team": "another directory", "team": "the same one"} {
		a := ada.send(at, url.Values{"dir": {dir}, "source": {"ada-team"}, "audience": {"all"}})
		want(t, name, a, http.StatusConflict)
		contains(t, name, a.body, "You already publish team/ as &#34;ada-team&#34;. Choose another ID", `href="#source-name"`, "Publish this directory", `value="all" checked`)
	}
	if all := s.All(); len(all) != 1 || all[0].Dir != "team" || all[0].Everybody {
		t.Errorf("there is now %+v", all)
	}
	want(t, "publishing the second", ada.send(at, url.Values{"dir": {"knowledge/team"}, "source": {"ada-knowledge-team"}, "audience": {"all"}}), http.StatusSeeOther)
	if all := s.All(); len(all) != 2 {
		t.Errorf("there is now %+v", all)
	}
}

func TestPublishingMarksTheFieldThatIsWrong(t *testing.T) {
	s := newShelf(t, shelved...)
	ada, at := s.as(s.ada), s.in("publish")
	type wrong struct {
		name, field string
		form        url.Values
	}
	cases := []wrong{
		{"the name", "source-name", url.Values{"source": {"No Name"}}},
		{"a reader", "source-readers", url.Values{"audience": {"named"}, "readers": {"nobodyx"}}},
		{"memory, without a word", "source-memory", url.Values{"dir": {"memory"}}},
	}
	for _, f := range new(space.SourceText).Fields() {
		cases = append(cases, wrong{f.Name, "source-" + f.Name, url.Values{f.Name: {strings.Repeat("x", f.Max+1)}}})
	}
	for _, c := range cases {
		form := url.Values{"dir": {"knowledge"}, "source": {"notes"}, "audience": {"all"}}
		for k, v := range c.form {
			form[k] = v
		}
		a := ada.send(at, form)
		want(t, c.name, a, http.StatusBadRequest)
		contains(t, c.name, a.body, `<a href="#`+c.field+`">Go to the field`, ` id="`+c.field+`"`)
		before, _, _ := strings.Cut(a.body, ` aria-invalid="true"`)
		if i := strings.LastIndex(before, "<input"); i < 0 || !strings.Contains(before[i:], `id="`+c.field+`"`) || strings.Count(a.body, "aria-invalid") != 1 {
			t.Errorf("%s: marked is %q", c.name, before[max(i, 0):])
		}
	}
	want(t, "names that do not count", ada.send(at, url.Values{"dir": {"knowledge"}, "source": {"notes"}, "audience": {"all"}, "readers": {"nobodyx"}}), http.StatusSeeOther)
}

// The form sends every text of a source, and has the texts again when the source is changed.
// The page of the library shows them.
func TestThePagesHaveEveryTextOfASource(t *testing.T) {
	s := newShelf(t, shelved...)
	ada, at := s.as(s.ada), s.in("publish")
	form := url.Values{"dir": {"knowledge"}, "source": {"notes"}, "audience": {"all"}}
	var want space.SourceText
	for _, f := range want.Fields() {
		*f.Text = "The " + f.Name + " & more"
		form.Set(f.Name, *f.Text)
	}
	ada.send(at, form)
	if all := s.All(); len(all) != 1 || all[0].SourceText != want {
		t.Errorf("the form published %+v", all)
	}
	change, library := ada.get(at+"?source=notes").body, s.as(s.eve).get("/library").body
	for _, f := range want.Fields() {
		text := html.EscapeString(*f.Text)
		contains(t, "the form", change, `name="`+f.Name+`" value="`+text+`"`)
		contains(t, "the library", library, text)
	}
}

func TestAttackSourcesOfAnotherAudience(t *testing.T) {
	s := newShelf(t, shelved...)
	s.publish("bob")
	eve := s.as(s.eve)
	nothing := withoutToken(eve.get("/library/docs/there-is-none/").body)
	for _, p := range []string{"/library/docs/notes", "/library/docs/notes/", "/library/docs/notes/README.md", "/library/docs/notes/sub/", "/library/raw/notes/README.md", "/library/docs/NOTES/"} {
		a := eve.get(p)
		want(t, p, a, http.StatusNotFound)
		if withoutToken(a.body) != nothing && p == "/library/docs/notes/" {
			t.Error("a source of others is told from one that is not there")
		}
	}
	want(t, "update now", eve.send("/library/sync/notes", nil), http.StatusNotFound)
	lacks(t, "eve's library", eve.get("/library").body, "notes/", "Team notes")
	out := s.browser()
	for _, p := range []string{"/library", "/library/docs/notes/", "/library/raw/notes/README.md"} {
		if a := out.get(p); a.StatusCode != http.StatusSeeOther || !strings.Contains(a.location(), "/signin?return=") {
			t.Errorf("%s for nobody: %d %s", p, a.StatusCode, a.location())
		}
	}
}

// Attack: a stranger reaches a source by way of their own space.
func TestAttackWhoMayPublish(t *testing.T) {
	s := newShelf(t, shelved...)
	s.publish("bob")
	eve := s.as(s.eve)
	// Through a space of their own.
	own := "/spaces/" + string(s.evil.ID) + "/publish"
	want(t, "a stranger unpublishes by way of their own space", eve.send(own+"/notes/end", nil), http.StatusNotFound)
	want(t, "a stranger changes it by way of their own space", eve.get(own+"?source=notes"), http.StatusNotFound)
	_, err := s.git.Commit(t.Context(), s.evil.ID, space.ChangeSet{Changes: []space.Change{{Path: "knowledge/x.md", Content: []byte("x")}}}, space.Meta{})
	must(t, err)
	want(t, "a stranger takes its name", eve.send(own, url.Values{"dir": {"knowledge"}, "source": {"notes"}, "audience": {"all"}}), http.StatusConflict)
	if got := len(s.All()); got != 1 {
		t.Errorf("there are %d sources", got)
	}
}

func TestAttackPathsInTheLibrary(t *testing.T) {
	s := newShelf(t, append(shelved, "knowledge/<script>alert(1).md", "# <script>alert(2)</script>\n<img src=x onerror=alert(3)>\n")...)
	s.publish()
	eve := s.as(s.eve)
	for _, p := range []string{
		"../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "sub/../../secret.txt", "sub%2fhow.md", "%2fsecret.txt", "secret.txt", "memory/person/name.md",
		"readme.md", "README.md/", ".git/config", "a%00b", "sub//how.md", "knowledge/README.md",
	} {
		for _, base := range []string{"/library/docs/notes/", "/library/raw/notes/"} {
			a := eve.get(base + p)
			if a.StatusCode == http.StatusOK || strings.Contains(a.body, "top-secret-text") || strings.Contains(a.body, "her-own-words") {
				t.Errorf("%s%s: %d %s", base, p, a.StatusCode, heading(a.body))
			}
		}
	}
	for _, p := range []string{"/library/docs/notes/", "/library/docs/notes/" + url.PathEscape("<script>alert(1).md")} {
		a := eve.get(p)
		want(t, p, a, http.StatusOK)
		lacks(t, p, a.body, "<script>alert", "onerror=alert(3)>")
	}
	for _, q := range []string{"?dir=../..", "?dir=%2e%2e", "?dir=nothing", "?dir=%00", "?dir=" + strings.Repeat("a/", 900), "?source=../x", "?source=%3Cscript%3E"} {
		if a := s.as(s.ada).get(s.in("publish") + q); a.StatusCode != http.StatusBadRequest && a.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", q, a.StatusCode)
		}
	}
}

// The menu of a directory leads its owner, and nobody else, to publishing it.
func TestTheOwnerPublishesFromTheDirectory(t *testing.T) {
	h := newHeld(t, "team/a.md", "a\n")
	carol, _ := h.user("carol", false)
	must(t, h.AddMember(t.Context(), cli, h.space.ID, carol.ID, space.Editor))
	link := `href="` + h.in("publish?dir=team") + `"`
	for name, tt := range map[string]struct {
		who  store.User
		dir  string
		want bool
	}{"the owner": {h.ada, "files/team/", true}, "an editor": {carol, "files/team/", false}, "the whole space": {h.ada, "files/", false}} {
		if a := h.as(tt.who).get(h.in("%s", tt.dir)); a.StatusCode != http.StatusOK || strings.Contains(a.body, link) != tt.want {
			t.Errorf("%s: %d, is the link there: %t", name, a.StatusCode, !tt.want)
		}
	}
}
