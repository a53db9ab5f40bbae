package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/egress"
	"satchel/internal/frontmatter"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
)

// checklist returns the class of each step on the page.
func checklist(a answer) (out []string) {
	_, list, _ := strings.Cut(a.body, `<ol class="checklist">`)
	list, _, _ = strings.Cut(list, "</ol>")
	for _, li := range strings.Split(list, `<li class="`)[1:] {
		class, _, _ := strings.Cut(li, `"`)
		out = append(out, class)
	}
	return out
}

// use calls as a client of the user, with its token.
func (h *hubWorld) use(u store.User, id space.SpaceID, name string) {
	h.t.Helper()
	_, secret, err := h.CreateKey(h.t.Context(), cli, store.NewKey{User: u.ID, Space: id, Scopes: []space.Scope{space.ScopeRead}, Name: name})
	must(h.t, err)
	_, err = h.Verify(h.t.Context(), secret.Reveal())
	must(h.t, err)
}

// The first page leads from step to step, and then becomes an overview.
func TestFirstSteps(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	steps := func(what string, want ...string) {
		t.Helper()
		if got := checklist(b.get("/")); !slices.Equal(got, want) {
			t.Errorf("%s: %v, not %v", what, got, want)
		}
	}
	steps("at first", "next", "later", "later", "later")
	want(t, "begin empty", b.send("/start/skip", nil), 303)
	steps("beginning empty", "next", "done", "later", "later")
	want(t, "stay local", b.send("/start/local", nil), 303)
	steps("staying local", "next", "done", "later", "done")

	b = h.as(h.ada)
	steps("another browser", "next", "later", "later", "later")
	h.choosing(b, "ada")
	b.send(h.path+"/pick", url.Values{"repository": {"11"}})
	steps("connected to GitHub", "next", "later", "later", "done")
	if a := b.get("/"); !strings.Contains(a.body, "ada-l/notes") {
		t.Error("it does not say where it is kept")
	}
	second := h.commitAs(space.Meta{Message: "Remember", Client: "<i>evil", Tool: "bash"}, "memory/person/a.md", "---\nvalue: a\n---\n")
	steps("with a fact", "next", "done", "done", "done")
	h.use(h.ada, h.space.ID, "Claude Code")
	a := b.get("/")
	if heading(a.body) != "Your Satchel" || !strings.Contains(a.body, "Claude Code") || !strings.Contains(a.body, "Remember") || !strings.Contains(a.body, "/commits/"+string(second.ID)) || strings.Contains(a.body, "<i>evil") {
		t.Errorf("the overview: %s", heading(a.body))
	}
	if got := checklist(a); len(got) > 0 {
		t.Errorf("all is done, and the list is still there: %v", got)
	}
}

// The first steps begin with the connection of a client. They stay until each is done or the
// person dismisses them.
func TestTheFirstStepsStayUntilTheyAreDismissed(t *testing.T) {
	h := newHubWorld(t)
	h.use(h.ada, h.space.ID, "Claude Code")
	b := h.as(h.ada)
	if got := checklist(b.get("/")); len(got) == 0 || slices.Contains(got, "done") {
		t.Errorf("with a client, the steps that are left are %v", got)
	}
	want(t, "dismiss", b.send("/start/dismiss", nil), 303)
	if a := b.get("/"); len(checklist(a)) > 0 || heading(a.body) != "Your Satchel" {
		t.Error("the steps are still there")
	}
	// Somebody without a client gets the overview, too.
	bob := h.as(h.bob)
	want(t, "dismiss", bob.send("/start/dismiss", nil), 303)
	if a := bob.get("/"); len(checklist(a)) > 0 || heading(a.body) != "Your Satchel" {
		t.Errorf("without a client: %s", heading(a.body))
	}
}

// Readers are not asked to do what they cannot do.
func TestFirstStepsOfAReader(t *testing.T) {
	h := newHubWorld(t)
	must(t, h.AddMember(t.Context(), cli, h.evil.ID, h.bob.ID, space.Reader))
	if a := h.as(h.bob).get("/"); strings.Contains(a.body, "/spaces/"+string(h.space.ID)+"/bring") {
		t.Error("a reader is led to bring something into ada's space")
	}
}

func TestThreeQuestions(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	bring := "/spaces/" + string(h.space.ID) + "/bring"
	want(t, "the page", b.get(bring), 200)
	want(t, "no answer", b.send(bring+"/questions", url.Values{"name": {" \n\t"}}), 400)
	a := b.send(bring+"/questions", url.Values{"name": {"Ada"}, "work": {strings.Repeat("é", 401)}})
	want(t, "too long", a, 400)
	if !strings.Contains(a.body, `value="Ada"`) {
		t.Error("what was entered is gone")
	}
	evil := "Ada\n---\nsource: inferred\n\"quoted\" \\ back: slash # no comment"
	a = b.send(bring+"/questions", url.Values{"name": {evil}, "answers": {"Short: in British English"}})
	want(t, "answered", a, 303)
	fields, err := frontmatter.Parse([]byte(h.text("memory/person/name.md")))
	must(t, err)
	for key, v := range map[string]string{"value": `Ada --- source: inferred "quoted" \ back: slash # no comment`, "source": "user_explicit", "client": "browser", "first_seen": "2026-11-20", "last_confirmed": "2026-11-20"} {
		if got := fields.String(key); got != v {
			t.Errorf("%s is %q, not %q", key, got, v)
		}
	}
	if n, ok := fields.Number("confidence"); !ok || n != 1 {
		t.Errorf("confidence %v", n)
	}
	want(t, "again", b.send(bring+"/questions", url.Values{"name": {"Ada Lovelace"}}), 303)
	if fields, err = frontmatter.Parse([]byte(h.text("memory/person/name.md"))); err != nil || fields.String("value") != "Ada Lovelace" {
		t.Errorf("%s, %v", fields.String("value"), err)
	}
	h.meanwhile(func() { h.commit("Meanwhile", "memory/person/name.md", "---\nvalue: Other\n---\n") })
	want(t, "changed meanwhile", b.send(bring+"/questions", url.Values{"name": {"Ada"}}), 303)
	if fields, err = frontmatter.Parse([]byte(h.text("memory/person/name.md"))); err != nil || fields.String("value") != "Ada" {
		t.Errorf("what the person said last is %s, %v", fields.String("value"), err)
	}
	h.commit("Break it", "memory/person/name.md", "Other")
	want(t, "not a fact", b.send(bring+"/questions", url.Values{"name": {"Ada"}}), 400)
}

// export sends a file as the exported file of the form.
func (b *browser) export(page, act, name, content string) answer {
	b.w.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	must(b.w.t, w.WriteField("form", b.token()))
	must(b.w.t, w.WriteField("act", act))
	f, err := w.CreateFormFile("export", name)
	must(b.w.t, err)
	_, err = f.Write([]byte(content))
	must(b.w.t, err)
	must(b.w.t, w.Close())
	return b.request(http.MethodPost, page, body.String(), func(r *http.Request) { r.Header.Set("Content-Type", w.FormDataContentType()) })
}

func TestImportAnExport(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	page := "/spaces/" + string(h.space.ID) + "/bring/export"
	const mem0 = `[{"id": "5f0c", "memory": "Prefers <b>tea</b>", "created_at": "2026-01-05T10:00:00Z"}]`
	a := b.export(page, "preview", "memories.json", mem0)
	want(t, "a preview", a, 200)
	if !strings.Contains(a.body, "Prefers &lt;b&gt;tea&lt;/b&gt;") || strings.Contains(a.body, "/commits/") {
		t.Errorf("the preview: %s", a.body)
	}
	a = b.export(page, "import", "memories.json", mem0)
	want(t, "an import", a, 200)
	if !strings.Contains(a.body, "/commits/") {
		t.Errorf("the result: %s", a.body)
	}
	a = b.export(page, "import", "memories.json", mem0)
	want(t, "a second import", a, 200)
	if strings.Contains(a.body, "/commits/") {
		t.Error("a second import changed something")
	}
	for name, sent := range map[string][3]string{
		"no file name": {"import", "", mem0}, "no button": {"", "a.json", mem0}, "damaged": {"import", "a.zip", "PK\x03\x04 cut off"}, "empty": {"import", "a.json", ""},
	} {
		if a := b.export(page, sent[0], sent[1], sent[2]); a.StatusCode < 400 || a.StatusCode >= 500 || problemOf(a.body) == "" {
			t.Errorf("%s: status %d", name, a.StatusCode)
		}
	}
	must(t, h.AddMember(t.Context(), cli, h.space.ID, h.bob.ID, space.Reader))
	if a := h.as(h.bob).export(page, "import", "memories.json", mem0); a.StatusCode < 400 {
		t.Errorf("attack: a reader imports: %d", a.StatusCode)
	}
}

// An import goes on after its request. The page looks again until the import has ended.
func TestImportFromAnAddress(t *testing.T) {
	remote := remotetest.New(t, remotetest.Options{TLS: true})
	remote.Create("x")
	remote.Push("x", "main", map[string]string{"a.md": "A"})
	h := importing(t, remote)
	work := make(chan func(context.Context), 1)
	h.attach(func(r *service.Running) {
		r.Background = func(f func(context.Context)) error { work <- f; return nil }
	})
	b := h.as(h.ada)
	bring := "/spaces/" + string(h.space.ID) + "/bring"
	for name, u := range map[string]string{
		"nothing": "", "no scheme": "github.com/a/b", "Attack: a directory": "/etc", "Attack: file": "file:///etc/passwd", "Attack: ext": "ext::sh -c id",
		"Attack: an option": "--upload-pack=id", "http": "http://example.com/x.git", "ssh": "ssh://git@example.com/x", "Attack: a password": "https://a:b@example.com/x.git", "Attack: a user": "https://token@example.com/x.git",
	} {
		want(t, name, b.send(bring+"/import", url.Values{"url": {u}}), 400)
	}
	if len(work) > 0 {
		t.Fatal("it began")
	}
	begin := func(name string) {
		t.Helper()
		a := b.send(bring+"/import", url.Values{"url": {" " + remote.URL(name) + " "}})
		if a.StatusCode != 303 {
			t.Fatalf("begin: %d %s", a.StatusCode, problemOf(a.body))
		}
		if a.location() != issuer+bring+"/import" || !strings.Contains(b.get(bring+"/import").body, `http-equiv="refresh"`) {
			t.Errorf("%s, or the page does not look again", a.location())
		}
		want(t, "a second one", b.send(bring+"/import", url.Values{"url": {remote.URL("x")}}), 409)
		(<-work)(t.Context())
	}
	begin("nosuch")
	if a := b.get(bring + "/import"); strings.Contains(a.body, "refresh") || !strings.Contains(a.body, `role="alert"`) || !strings.Contains(a.body, `value="`+remote.URL("nosuch")+`"`) {
		t.Error("a failure is not shown at the address")
	}
	begin("x")
	if a := b.get(bring + "/import"); strings.Contains(a.body, "refresh") || !strings.Contains(a.body, "1 file is") {
		t.Error("the end is not shown")
	}
	// Attack: another person's import.
	want(t, "a stranger", h.as(h.eve).get(bring+"/import"), 404)
	want(t, "a reader begins one", h.as(h.bob).send(bring+"/import", url.Values{"url": {"https://example.com/x.git"}}), 403)
}

func TestConnectPages(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.eve)
	index := b.get("/connect")
	want(t, "the list", index, 200)
	for slug, text := range map[string]string{
		"claude-code": "claude mcp add --transport http --scope user satchel", "claude": "Add custom connector", "claude-desktop": "claude_desktop_config.json", "chatgpt": "Developer mode",
		"cursor": `href="cursor://anysphere.cursor-deeplink/mcp/install?config=`, "vscode": "code --add-mcp", "other": "streamable HTTP", "key": "Bearer YOUR_KEY",
		"codex": "codex mcp add satchel --url", "gemini-cli": "gemini mcp add --transport http --scope user satchel",
		"opencode": "opencode mcp auth satchel", "qwen-code": "qwen mcp add --transport http satchel", "copilot-cli": "copilot mcp add --transport http satchel",
		"mcp-remote": "npx", "code": "SATCHEL_TOKEN",
	} {
		if !strings.Contains(index.body, `href="/connect/`+slug+`"`) {
			t.Errorf("%s is not in the list", slug)
		}
		a := b.get("/connect/" + slug)
		want(t, slug, a, 200)
		read := strings.NewReplacer(`<span class="word">`, "", "</span>", "", "<wbr>", "").Replace(a.body)
		if !strings.Contains(read, text) || !strings.Contains(a.body, "Check again") || len(a.body) > 20_000 {
			t.Errorf("%s: no %q in %d bytes", slug, text, len(a.body))
		}
	}
	want(t, "a client that is none", b.get("/connect/nothing"), 404)
	if a := h.browser().get("/connect/claude"); a.StatusCode != 303 {
		t.Errorf("signed out: %d", a.StatusCode)
	}
}

// The page of each client has a command that installs the integration, or a text to paste.
func TestIntegrationsOnConnectPages(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.eve)
	for slug, id := range map[string]string{
		"claude-code": "install", "gemini-cli": "install", "claude": "instructions", "claude-desktop": "instructions", "chatgpt": "instructions",
		"codex": "instructions", "cursor": "instructions", "vscode": "instructions", "opencode": "instructions", "qwen-code": "instructions", "copilot-cli": "instructions",
		"mcp-remote": "", "code": "", "other": "instructions", "key": "",
	} {
		a := b.get("/connect/" + slug)
		for _, x := range []string{"install", "instructions"} {
			if strings.Contains(a.body, ` id="`+x+`"`) != (x == id) {
				t.Errorf("%s: the page has %q: %t", slug, x, x != id)
			}
		}
	}
	// The files can be downloaded without a session.
	for slug, status := range map[string]int{"claude-code": 200, "gemini-cli": 200, "codex": 200, "key": 404, "nothing": 404} {
		a := h.browser().get("/connect/" + slug + "/files.tar.gz")
		want(t, slug, a, status)
		if status == 200 && (a.Header.Get("Content-Type") != "application/gzip" || !strings.HasPrefix(a.body, "\x1f\x8b")) {
			t.Errorf("%s: %s", slug, a.Header.Get("Content-Type"))
		}
	}
}

type arrivals struct {
	Clients []struct {
		Name, Space string
		Called      bool
	}
}

// The first call of a person's own client ticks the step.
func TestArrivals(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	h.use(h.ada, h.space.ID, "old")
	h.pass(5 * time.Minute)
	since := strconv.FormatInt(h.clock().UnixMilli(), 10)
	status := func(what string, want ...string) {
		t.Helper()
		a := b.get("/connect/status?since=" + since)
		var got arrivals
		must(t, json.Unmarshal([]byte(a.body), &got))
		names := []string{}
		for _, c := range got.Clients {
			names = append(names, c.Name+" "+strconv.FormatBool(c.Called))
		}
		slices.Sort(names)
		if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "application/json" || !slices.Equal(names, want) {
			t.Errorf("%s: %d %v, not %v", what, a.StatusCode, names, want)
		}
	}
	status("nothing yet")
	h.use(h.eve, h.evil.ID, "eve's")
	status("another's client")
	h.pass(10 * time.Second)
	code := h.consented(b)
	tokens, err := h.Redeem(t.Context(), auth.Redemption{Code: code, Client: "client", RedirectURI: redirect, Verifier: verifier, Resource: issuer + "/mcp"})
	must(t, err)
	status("signed in", "Clara false")
	if a := b.get("/connect?since=" + since); !strings.Contains(a.body, "Clara") || strings.Contains(a.body, "It works.") {
		t.Error("the page without a script does not say it")
	}
	_, err = h.VerifyAccess(t.Context(), tokens.Access.Reveal(), issuer+"/mcp")
	must(t, err)
	status("called", "Clara true")
	if a := b.get("/connect/other?since=" + since); !strings.Contains(a.body, "It works.") {
		t.Error("the page without a script does not tick it")
	}
	for _, wrong := range []string{"", "x", "-1", "0", "99999999999999999999", "1&since=2"} {
		want(t, "since="+wrong, b.get("/connect/status?since="+wrong), 200)
		want(t, "page since="+wrong, b.get("/connect?since="+wrong), 200)
	}
	if a := h.browser().get("/connect/status?since=" + since); a.StatusCode != http.StatusSeeOther {
		t.Errorf("signed out: %d", a.StatusCode)
	}
}

// consented approves the client and returns its code.
func (h *hubWorld) consented(b *browser) string {
	h.t.Helper()
	a := b.send(request(), url.Values{"decision": {"allow"}, "space": {string(h.space.ID)}})
	u, err := url.Parse(a.location())
	must(h.t, err)
	return u.Query().Get("code")
}

// importing returns a world that may import from a server on this machine.
func importing(t *testing.T, remote *remotetest.Server) *hubWorld {
	t.Helper()
	port, err := strconv.ParseUint(remote.Host()[strings.LastIndexByte(remote.Host(), ':')+1:], 10, 16)
	must(t, err)
	proxy, err := egress.NewProxy(t.Context(), egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Ports: []uint16{uint16(port)}})
	must(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	return newHubWorldOf(t, servicetest.Setup{
		Transport: func(o *transport.Options) { o.Egress = proxy },
		Service:   func(o *service.Options) { o.Imports.CAFile = remote.CAFile() },
	})
}
