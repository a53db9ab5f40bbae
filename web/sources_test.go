package web_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/gitstore/remotetest"
	"satchel/internal/service"
	"satchel/internal/space"
)

// A page without sources explains them, and has one thing to do.
func TestALibraryWithoutSources(t *testing.T) {
	w := newWorld(t)
	p := w.as(w.eve).get("/library")
	want(t, "the page", p, http.StatusOK)
	_, rest, _ := strings.Cut(p.body, `<div class="empty">`)
	box, _, ok := strings.Cut(rest, "</div>")
	if !ok || strings.Count(box, "<p>") != 2 || strings.Count(box, `class="button"`) != 1 {
		t.Errorf("the empty page has %q", box)
	}
	contains(t, "the button", box, `href="/library/add"`)
	// The example fills in the form.
	_, rest, _ = strings.Cut(box, `href="/library/add?address=`)
	address, _, _ := strings.Cut(rest, `"`)
	address, err := url.QueryUnescape(address)
	if err != nil || !strings.HasPrefix(address, "https://") {
		t.Fatalf("the example is %q: %v", address, err)
	}
	contains(t, "the form", w.as(w.eve).get("/library/add?address="+url.QueryEscape(address)).body, `name="address" value="`+address+`"`)
}

func TestTheListOfSources(t *testing.T) {
	f := newFollowed(t)
	f.sync()
	eve := f.as(f.eve)
	list := eve.get("/library").body
	contains(t, "the list", list, `href="/library/docs/handbook/"`, `href="`+handbook+`"`, `<span class="tag">Git repository</span>`, "4 files", "next update <time ")
	lacks(t, "the list", list, `action="/library/sync/handbook"`)
	lacks(t, "a title that says what the ID says", list, `<code>handbook</code>`)
	if got := tone(list); got != "good" {
		t.Errorf("the state is %q", got)
	}
	lacks(t, "a list without trouble", list, `class="badge bad"`)
	f.upstream.Inject(func(remotetest.Request) remotetest.Fault { return remotetest.NotFound() })
	if r := f.sync(); r.State != space.SyncGone {
		t.Fatalf("%+v", r)
	}
	list = eve.get("/library").body
	if got := tone(list); got != "bad" {
		t.Errorf("the state after a failure is %q", got)
	}
	contains(t, "the list after a failure", list, `action="/library/sync/handbook"`)
	contains(t, "the navigation of an admin", f.as(f.ada).get("/account").body, `<span class="badge bad">1<`)
	lacks(t, "the navigation of a reader", eve.get("/account").body, `class="badge bad"`)
}

// Admins manage sources that they do not read. Nobody else learns of them.
func TestSourcesOfOthersInTheList(t *testing.T) {
	f := newFollowed(t, "bob")
	f.sync()
	contains(t, "the list of an admin", f.as(f.ada).get("/library").body, `href="`+handbook+`"`)
	want(t, "the page, for an admin", f.as(f.ada).get(handbook), http.StatusOK)
	want(t, "the page, for a reader", f.as(f.bob).get(handbook), http.StatusOK)
	eve := f.as(f.eve)
	lacks(t, "the list of another person", eve.get("/library").body, "handbook")
	for _, p := range []string{"", "/events", "/runs/x", "/change", "/remove"} {
		want(t, "for another person "+p, eve.get(handbook+p), http.StatusNotFound)
	}
	for _, p := range []string{"/sync", "/dry-run", "/cancel", "/schedule", "/change", "/remove"} {
		want(t, "by another person "+p, eve.send(handbook+p, nil), http.StatusNotFound)
	}
}

// forms returns the actions of the forms in a page.
func formsOf(body string) (all []string) {
	for _, part := range strings.Split(body, `action="`)[1:] {
		to, _, _ := strings.Cut(part, `"`)
		if to != "/signout" && to != "/theme" { // in the frame
			all = append(all, to)
		}
	}
	return all
}

func TestThePageOfASource(t *testing.T) {
	f := newFollowed(t)
	run := f.sync()
	ada := f.as(f.ada).get(handbook)
	checkPage(t, "the page", ada)
	contains(t, "the page of an admin", ada.body,
		`>Git repository<`, f.upstream.URL("docs"), "Apache-2.0", "4 files", `href="`+handbook+`/runs/`+run.ID+`"`, "4 files added", `href="`+handbook+`/change"`, `href="`+handbook+`/remove"`, `data-follow="`+handbook+`/events?key=`)
	for _, act := range []string{"/sync", "/dry-run", "/schedule"} {
		if !slices.Contains(formsOf(ada.body), handbook+act) {
			t.Errorf("an admin lacks %s: %v", act, formsOf(ada.body))
		}
	}
	eve := f.as(f.eve).get(handbook)
	checkPage(t, "the page of a reader", eve)
	if got := formsOf(eve.body); !slices.Equal(got, []string{handbook + "/sync"}) {
		t.Errorf("a reader can do %v", got)
	}
	lacks(t, "the page of a reader", eve.body, f.upstream.URL("docs"), "/runs/", `href="`+handbook+`/change"`)
}

func TestReadersOnlyRequestASync(t *testing.T) {
	f := newFollowed(t)
	f.sync()
	eve := f.as(f.eve)
	for _, p := range []string{"/change", "/remove", "/runs/x"} {
		want(t, p, eve.get(handbook+p), http.StatusForbidden)
	}
	for p, form := range map[string]url.Values{
		"/dry-run": nil, "/cancel": nil, "/schedule": {"pause": {"yes"}}, "/change": {"title": {"Mine"}}, "/remove": nil, "/sync": {"reset": {"yes"}},
	} {
		want(t, p, eve.send(handbook+p, form), http.StatusForbidden)
	}
	if st := f.status(); st.Paused || len(st.Runs) != 1 {
		t.Errorf("%+v", st)
	}
	want(t, "a request", eve.send(handbook+"/sync", nil), http.StatusSeeOther)
}

func TestPausingASource(t *testing.T) {
	f := newFollowed(t)
	f.sync()
	ada := f.as(f.ada)
	want(t, "pause", ada.send(handbook+"/schedule", url.Values{"pause": {"yes"}}), http.StatusSeeOther)
	page := ada.get(handbook).body
	if tone(page) != "off" || !f.status().Paused {
		t.Errorf("the state is %q", tone(page))
	}
	contains(t, "the page", page, `name="pause" value="no"`, "updated only on request", "<dd>Paused; every 6 hours before</dd>")
	want(t, "resume", ada.send(handbook+"/schedule", url.Values{"pause": {"no"}}), http.StatusSeeOther)
	if st := f.status(); st.Paused || st.Next.IsZero() {
		t.Errorf("%+v", st)
	}
}

// A dry run lists each file that a sync would change, and changes nothing.
func TestADryRunOnThePage(t *testing.T) {
	f := newFollowed(t)
	f.sync()
	f.push("guide/a.md", "# Alpha, changed\n", "guide/b.md", remotetest.Gone, "guide/moved.md", "# Beta\n", "new.md", "# New\n", "README.md", remotetest.Gone)
	ada := f.as(f.ada)
	a := ada.send(handbook+"/dry-run", nil)
	want(t, "the dry run", a, http.StatusOK)
	checkPage(t, "the dry run", a)
	for name, status := range map[string]string{"guide/a.md": "changed", "guide/moved.md": "renamed", "new.md": "added", "README.md": "deleted"} {
		contains(t, "the dry run", a.body, `<span class="mark `+status+`">`+status+`</span> <bdi>`+name+`</bdi>`)
	}
	if strings.Count(a.body, `<span class="mark `) != 4 {
		t.Error("other files are listed too")
	}
	if n := len(f.status().Runs); n != 1 {
		t.Errorf("there are %d runs", n)
	}
}

// The script gets the steps and then the page of a form that takes a while.
func TestAFormThatTakesAWhile(t *testing.T) {
	f := newFollowed(t)
	f.sync()
	a := f.as(f.ada).send(handbook+"/dry-run", nil, func(r *http.Request) {
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Accept-Encoding", "gzip")
	})
	if a.Header.Get("Content-Type") != "text/event-stream" {
		t.Error(a.Header)
	}
	_, data, ok := strings.Cut(a.body, "event: page\ndata: ")
	if !ok || !strings.Contains(data, `\u003ch1\u003e`) {
		t.Errorf("the answer is %q", a.body)
	}
	a = f.as(f.eve).send(handbook+"/dry-run", nil, func(r *http.Request) { r.Header.Set("Accept", "text/event-stream") })
	lacks(t, "the answer to a reader", a.body, `id=\"dry-run\"`)
}

func TestTheChangesOfASync(t *testing.T) {
	f := newFollowed(t)
	f.sync()
	f.push("guide/a.md", "# Omega\n", "README.md", remotetest.Gone)
	run := f.sync()
	a := f.as(f.ada).get(handbook + "/runs/" + run.ID)
	want(t, "the page", a, http.StatusOK)
	checkPage(t, "the page", a)
	contains(t, "the changes", a.body, `<bdi>guide/a.md</bdi> <span class="mark changed">`, `<bdi>README.md</bdi> <span class="mark deleted">`, "Omega", `class="diff"`)
	want(t, "a sync that there is not", f.as(f.ada).get(handbook+"/runs/none"), http.StatusNotFound)
}

// A sync that would remove most files waits for a person, on the page as well.
func TestConfirmingAShrink(t *testing.T) {
	f := newFollowed(t)
	f.sync()
	f.push("guide/a.md", remotetest.Gone, "guide/b.md", remotetest.Gone, "LICENSE", remotetest.Gone)
	if r := f.sync(); r.State != space.SyncStopped {
		t.Fatalf("%+v", r)
	}
	ada := f.as(f.ada)
	contains(t, "the page", ada.get(handbook).body, `id="source-problem"`, "3 of the 4 files", `name="confirm" value="yes"`)
	lacks(t, "the page", ada.get(handbook).body, "Update now", `class="problem" id="source-problem"`)
	contains(t, "the dry run", ada.send(handbook+"/dry-run", nil).body, `name="confirm" value="yes"`)
	lacks(t, "the page of a reader", f.as(f.eve).get(handbook).body, `name="confirm"`)
	f.pass(time.Minute)
	want(t, "confirm", ada.send(handbook+"/sync", url.Values{"confirm": {"yes"}}), http.StatusSeeOther)
	f.sync() // waits for it
	if st := f.status(); st.State != space.SyncReady || st.Runs[0].Deleted != 3 {
		t.Errorf("%+v", st)
	}
}

// A failure that is over is not what the page says first.
func TestAFailureThatIsOver(t *testing.T) {
	f := newFollowed(t)
	f.sync()
	f.upstream.Inject(func(remotetest.Request) remotetest.Fault { return remotetest.NotFound() })
	if r := f.sync(); r.State != space.SyncGone {
		t.Fatalf("%+v", r)
	}
	ada := f.as(f.ada)
	page := ada.get(handbook)
	if got := tone(regionOf(t, page, "runs")); got != "bad" {
		t.Errorf("the update that failed is %q", got)
	}
	contains(t, "what to do", page.body, `<a class="button" href="`+handbook+`/change">`)
	contains(t, "what to do in the list", ada.get("/library").body, `href="`+handbook+`/change"`)
	f.upstream.Inject(nil)
	f.sync()
	runs := regionOf(t, ada.get(handbook), "runs")
	if got := tone(runs); got != "good" || strings.Contains(runs, `class="state bad"`) || !strings.Contains(runs, `class="state over"`) {
		t.Errorf("the newest update is %q in %s", got, runs)
	}
}

func TestRemovingASource(t *testing.T) {
	f := newFollowed(t)
	f.sync()
	ada := f.as(f.ada)
	a := ada.get(handbook + "/remove")
	want(t, "the question", a, http.StatusOK)
	contains(t, "what is lost", a.body, "4 files", "1 update")
	want(t, "the answer", ada.send(handbook+"/remove", nil), http.StatusSeeOther)
	want(t, "the page", ada.get(handbook), http.StatusNotFound)
	lacks(t, "the list", ada.get("/library").body, "handbook")
}

func TestChangingASource(t *testing.T) {
	f := newFollowed(t)
	f.sync()
	ada := f.as(f.ada)
	a := ada.get(handbook + "/change")
	checkPage(t, "the form", a)
	contains(t, "the form", a.body, `name="title" value="Handbook"`, `name="setting-branch"`, `value="all" checked`, `<option value="21600" selected>`)
	form := url.Values{"title": {"Our handbook"}, "description": {"How we work"}, "aliases": {"rules,  policies"}, "audience": {"named"}, "readers": {"bob"}, "every": {"3600"}, "setting-url": {f.upstream.URL("docs")}}
	want(t, "save", ada.send(handbook+"/change", form), http.StatusSeeOther)
	x, err := f.service.OpenSource(t.Context(), service.Person(f.bob), "handbook")
	must(t, err)
	if st := f.status(); x.Source.Title != "Our handbook" || len(x.Source.Names()) != 3 || x.Source.Everybody || st.Every != 3600 || st.Version == "" {
		t.Errorf("%+v, %+v", x.Source, st)
	}
	want(t, "the page, for whom the source is no more", f.as(f.eve).get(handbook), http.StatusNotFound)
	for field, bad := range map[string][2]string{
		"source-title": {"title", strings.Repeat("x", 90)}, "source-readers": {"readers", "nobodyx"}, "source-every": {"every", "7"},
		"setting-content_path": {"setting-content_path", "../x"}, "setting-url": {"setting-url", ""},
	} {
		wrong := url.Values{bad[0]: {bad[1]}}
		for k, v := range form {
			if wrong[k] == nil {
				wrong[k] = v
			}
		}
		wantWrong(t, field, ada.send(handbook+"/change", wrong), field)
	}
}

// wantWrong checks that a page marks one input, which the problem of the page describes.
func wantWrong(t *testing.T, what string, a answer, field string) {
	t.Helper()
	if a.StatusCode < 400 || a.StatusCode >= 500 {
		t.Errorf("%s: %d", what, a.StatusCode)
	}
	checkPage(t, what, a)
	contains(t, what, a.body, `<a href="#`+field+`">`)
	i := strings.Index(a.body, `id="`+field+`"`)
	if i < 0 || strings.Count(a.body, "aria-invalid") != 1 {
		t.Errorf("%s: %d inputs are marked", what, strings.Count(a.body, "aria-invalid"))
		return
	}
	if input, _, _ := strings.Cut(a.body[i:], ">"); !strings.Contains(input, `aria-invalid="true"`) || !strings.Contains(input, `aria-describedby="problem`) {
		t.Errorf("%s: the input is %s", what, input)
	}
}

// Adding begins with one address.
func TestTheAddressOfASource(t *testing.T) {
	f := newFollowed(t)
	ada := f.as(f.ada)
	a := ada.get("/library/add")
	checkPage(t, "the form", a)
	form, _, _ := strings.Cut(a.body[strings.Index(a.body, `action="/library/add/preview"`):], "</form>")
	if n := strings.Count(form, "<input") - strings.Count(form, `type="hidden"`); n != 1 {
		t.Errorf("the form has %d fields", n)
	}
	for name, address := range map[string]string{"no address": "not an address", "a private address": f.upstream.URL("docs"), "nothing": ""} {
		a := ada.send("/library/add/preview", url.Values{"address": {address}})
		wantWrong(t, name, a, "source-address")
		contains(t, "what was entered", a.body, `value="`+address+`"`)
	}
	wantWrong(t, "an address that people may not add", f.as(f.eve).send("/library/add/preview", url.Values{"address": {"https://docs.example.com/"}}), "source-address")
	if n := len(f.upstream.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}

// The form that confirms a preview works without a script, and keeps what was entered.
func TestAddingASource(t *testing.T) {
	f := newFollowed(t)
	ada := f.as(f.ada)
	found := `{"kind":"git","files":12,"bytes":4096,"titles":["Intro <b>"],"licence":"MIT","skipped":{"too_large":2}}`
	form := url.Values{
		"kind": {"git"}, "settings": {`{"url":"https://git.example.com/guide.git"}`}, "setting-url": {"https://git.example.com/guide.git"}, "setting-branch": {"stable"}, "found": {found},
		"name": {"guide"}, "title": {"The guide"}, "description": {"How to"}, "audience": {"named"}, "readers": {"bob, eve"}, "every": {"86400"},
	}
	with := func(k, v string) url.Values {
		out := url.Values{}
		for key, values := range form {
			out[key] = values
		}
		out.Set(k, v)
		return out
	}
	for field, bad := range map[string]url.Values{
		"source-name": with("name", "handbook"), "source-title": with("title", strings.Repeat("x", 90)), "source-description": with("description", strings.Repeat("x", 400)),
		"source-readers": with("readers", "nobodyx"), "source-every": with("every", "x"), "setting-content_path": with("setting-content_path", "../x"),
	} {
		a := ada.send("/library/add", bad)
		wantWrong(t, field, a, field)
		contains(t, "what was found", a.body, "12 files", "MIT", "Intro &lt;b&gt;", "<strong>2</strong> files", `value="stable"`)
		if field != "source-title" && field != "source-readers" {
			contains(t, "the further settings", a.body, "<details open>")
		}
	}
	a := ada.send("/library/add", form)
	want(t, "adding", a, http.StatusSeeOther)
	if !strings.HasPrefix(a.location(), issuer+"/library/sources/guide") {
		t.Error(a.location())
	}
	st, err := f.service.ListSyncRuns(t.Context(), service.Operator(), service.ListSyncRunsInput{ID: "guide"})
	must(t, err)
	x, err := f.service.OpenSource(t.Context(), service.Person(f.eve), "guide")
	must(t, err)
	if string(st.Settings) != `{"url":"https://git.example.com/guide.git","branch":"stable"}` || st.Every != 86400 || x.Source.Title != "The guide" || x.Source.Everybody || len(x.Source.Readers) != 2 {
		t.Errorf("%s %+v", st.Settings, x.Source)
	}
	// Without an ID, the title gives it.
	if a := ada.send("/library/add", with("name", "")); !strings.HasPrefix(a.location(), issuer+"/library/sources/the-guide") {
		t.Error(a.location())
	}
	want(t, "a form that lacks what was found", ada.send("/library/add", url.Values{"kind": {"git"}}), http.StatusBadRequest)
}

// An open page learns when the state has changed.
func TestThePageFollowsTheSync(t *testing.T) {
	f := newFollowed(t)
	f.sync()
	page := f.as(f.eve).get(handbook).body
	_, rest, _ := strings.Cut(page, `data-follow="`)
	events, _, _ := strings.Cut(rest, `"`)
	s := f.as(f.eve).stream(f.serve(), events)
	ada := f.as(f.ada)
	want(t, "pause", ada.send(handbook+"/schedule", url.Values{"pause": {"yes"}}), http.StatusSeeOther)
	if got := s.until("event: "); got != "event: state" {
		t.Errorf("%q", got)
	}
	// The stream ends with the right.
	everybody, readers := false, []string{"bob"}
	_, err := f.service.ChangeSyncedSource(t.Context(), service.Operator(), service.ChangeSyncedSourceInput{ID: "handbook", Everybody: &everybody, Readers: &readers})
	must(t, err)
	want(t, "resume", ada.send(handbook+"/schedule", url.Values{"pause": {"no"}}), http.StatusSeeOther)
	if rest := s.rest(); strings.Contains(rest, "event: ") {
		t.Errorf("it goes on: %s", rest)
	}
}

// A person adds a source for uploaded files, fills it, and removes a file. Files that cannot become a
// page are named.
func TestUploadingToASource(t *testing.T) {
	f := newFollowed(t)
	eve := f.as(f.eve)
	a := eve.send("/library/add/upload", url.Values{"title": {"Pump manuals"}})
	want(t, "add", a, http.StatusSeeOther)
	at := "/library/sources/pump-manuals"
	if to := a.Header.Get("Location"); !strings.HasSuffix(to, at+"?done=created") {
		t.Fatalf("to %s", to)
	}
	page := eve.get(at)
	checkPage(t, "the page", page)
	contains(t, "the form", page.body, `type="file" name="files" multiple`, `action="`+at+`/upload"`)
	lacks(t, "the form", page.body, `action="`+at+`/sync"`)
	want(t, "upload", eve.sendFiles(at+"/upload", "guide.html", "<main><h1>Start</h1><p>Press the button.</p></main>", "notes.md", "# Notes\n"), http.StatusSeeOther)
	contains(t, "the page of a file", eve.get("/library/docs/pump-manuals/guide.html.md").body, "Press the button.")
	page = eve.get(at)
	checkPage(t, "the page with files", page)
	contains(t, "the files", regionOf(t, page, "held"), `href="/library/docs/pump-manuals/guide.html.md"`, `name="name" value="notes.md"`)
	contains(t, "the updates", regionOf(t, page, "runs"), "<bdi>guide.html.md</bdi>", "<bdi>notes.md</bdi>")
	a = eve.sendFiles(at+"/upload", "more.md", "# More\n", "broken.ipynb", "{")
	want(t, "a broken file", a, http.StatusUnprocessableEntity)
	contains(t, "a broken file", a.body, "<bdi>broken.ipynb</bdi>")
	want(t, "the file beside it", eve.get("/library/docs/pump-manuals/more.md"), http.StatusOK)
	want(t, "no file", eve.sendFiles(at+"/upload"), http.StatusUnprocessableEntity)
	want(t, "remove", eve.send(at+"/files/remove", url.Values{"name": {"notes.md"}}), http.StatusSeeOther)
	want(t, "the removed file", eve.get("/library/docs/pump-manuals/notes.md"), http.StatusNotFound)
	want(t, "remove an unknown file", eve.send(at+"/files/remove", url.Values{"name": {"notes.md"}}), http.StatusUnprocessableEntity)
	wantWrong(t, "a reader whom there is not", eve.send("/library/add/upload", url.Values{"title": {"Plans"}, "audience": {"named"}, "readers": {"nobodyx"}}), "upload-readers")
	want(t, "a title is missing", eve.send("/library/add/upload", url.Values{"title": {" "}}), http.StatusUnprocessableEntity)
	lacks(t, "the list", eve.get("/library").body, `action="/library/sync/pump-manuals"`)
	// Attack: other people, and sources that follow an upstream.
	want(t, "another person's source", f.as(f.bob).sendFiles(at+"/upload", "a.md", "# A\n"), http.StatusNotFound)
	want(t, "a source that follows an upstream", f.as(f.ada).sendFiles(handbook+"/upload", "a.md", "# A\n"), http.StatusNotFound)
}
