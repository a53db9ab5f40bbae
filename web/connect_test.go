package web_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/space"
	"satchel/web"
)

// callers are the names that clients give themselves.
type callers map[space.GrantID][]web.CalledAs

func (c callers) of(id space.GrantID) []web.CalledAs { return c[id] }

// keyCalls makes a client call with a key, under its own name.
func (h *hubWorld) keyCalls(c callers, u store.User, id space.SpaceID, key, as string) space.GrantID {
	h.t.Helper()
	g, secret, err := h.CreateKey(h.t.Context(), cli, store.NewKey{User: u.ID, Space: id, Scopes: []space.Scope{space.ScopeRead}, Name: key, Expires: h.clock().Add(24 * time.Hour)})
	must(h.t, err)
	_, err = h.Verify(h.t.Context(), secret.Reveal())
	must(h.t, err)
	if as != "" {
		c[g.ID] = slices.Insert(c[g.ID], 0, web.CalledAs{Name: as, At: h.clock()})
	}
	return g.ID
}

// A client's page is ticked when a client of that name calls. Other clients are marked as
// such.
func TestAClientsPageTicksAtThatClient(t *testing.T) {
	for _, tt := range []struct {
		key, as string
		ticked  []string
	}{
		{"laptop", "claude-code/2.0.1", []string{"claude-code", "key", "other", ""}},
		{auth.StdioKey + "host", "claude-ai/0.1.0", []string{"claude-desktop", "other", ""}},
		{"a key", "openai-mcp/1.0.0", []string{"chatgpt", "key", "other", ""}},
		{"a key", "cursor-vscode/1.0.0", []string{"cursor", "key", "other", ""}},
		{"a key", "Visual Studio Code/1.104", []string{"vscode", "key", "other", ""}},
		{"a key", "codex-mcp-client/0.169.0", []string{"codex", "key", "other", ""}},
		{"a key", "gemini-cli-mcp-client/0.61.0", []string{"gemini-cli", "key", "other", ""}},
		{"a key", "opencode/1.18.33", []string{"opencode", "key", "other", ""}},
		{"a key", "qwen-code-mcp-client/0.9", []string{"qwen-code", "key", "other", ""}},
		{"a key", "mcp-sdk/1", []string{"key", "other", ""}},
		{"Claude Code", "mcp-sdk/1", []string{"key", "other", ""}}, // what it calls itself counts
		{"Cursor at work", "", []string{"cursor", "key", "other", ""}},
		{"a key", "", []string{"key", "other", ""}},
	} {
		t.Run(tt.key+" as "+tt.as, func(t *testing.T) {
			c := callers{}
			h := newHubWorld(t, func(o *web.Options) { o.Called = c.of })
			b := h.as(h.ada)
			since := strconv.FormatInt(h.clock().UnixMilli(), 10)
			h.pass(time.Second)
			h.keyCalls(c, h.ada, h.space.ID, tt.key, tt.as)
			for _, slug := range []string{"claude-code", "claude", "claude-desktop", "chatgpt", "cursor", "vscode", "codex", "gemini-cli", "opencode", "qwen-code", "copilot-cli", "other", "key", ""} {
				ticks := slices.Contains(tt.ticked, slug)
				var got struct {
					Clients []struct {
						Name, Key     string
						Called, Other bool
					}
				}
				must(t, json.Unmarshal([]byte(b.get("/connect/status?since="+since+"&client="+slug).body), &got))
				if len(got.Clients) != 1 || !got.Clients[0].Called || got.Clients[0].Other == ticks {
					t.Errorf("%q: the script is told %+v", slug, got)
				} else if tt.as != "" && (got.Clients[0].Name != tt.as || got.Clients[0].Key != tt.key) {
					t.Errorf("%q: it is not named: %+v", slug, got)
				}
				a := b.get(strings.TrimSuffix("/connect/"+slug, "/") + "?since=" + since)
				if strings.Contains(a.body, "It works.") != ticks || strings.Contains(a.body, " has not yet.") == ticks || strings.Contains(a.body, "This page updates automatically") == ticks {
					t.Errorf("%q: the page without a script ticks: %t", slug, !ticks)
				}
			}
		})
	}
}

// A client that registered is also known by that name, and is listed once.
func TestAClientsPageTicksByTheRegisteredName(t *testing.T) {
	c := callers{}
	h := newHubWorld(t, func(o *web.Options) { o.Called = c.of })
	must(t, h.RegisterClient(t.Context(), auth.Client{ID: "cc", Kind: auth.ClientRegistered, Name: "Claude Code (satchel)", RedirectURIs: []string{redirect}, Created: h.clock()}))
	b := h.as(h.ada)
	since := strconv.FormatInt(h.clock().UnixMilli(), 10)
	a := b.send(request("client_id", "cc"), url.Values{"decision": {"allow"}, "space": {string(h.space.ID)}})
	back, err := url.Parse(a.location())
	must(t, err)
	tokens, err := h.Redeem(t.Context(), auth.Redemption{Code: back.Query().Get("code"), Client: "cc", RedirectURI: redirect, Verifier: verifier, Resource: issuer + "/mcp"})
	must(t, err)
	if a := b.get("/connect/cursor?since=" + since); !strings.Contains(a.body, "is connected to") || !strings.Contains(a.body, " is not yet.") {
		t.Error("Cursor's page takes it for Cursor before it calls")
	}
	p, err := h.VerifyAccess(t.Context(), tokens.Access.Reveal(), issuer+"/mcp")
	must(t, err)
	c[p.Grant] = []web.CalledAs{{Name: "something", At: h.clock()}, {Name: "else", At: h.clock()}}
	if a := b.get("/connect/claude-code?since=" + since); strings.Count(a.body, "has called") != 1 || !strings.Contains(a.body, "It works.") {
		t.Errorf("its page: %d calls", strings.Count(a.body, "has called"))
	}
	if a := b.get("/connect/cursor?since=" + since); strings.Contains(a.body, "It works.") {
		t.Error("Cursor's page ticks")
	}
}

// A call before a page was opened does not tick it, even in the same minute or second.
func TestAPageIsNotTickedByACallBeforeIt(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	h.use(h.ada, h.space.ID, "Claude Code")
	for _, written := range []bool{false, true} {
		if written {
			must(t, h.Flush(t.Context()))
		}
		h.pass(time.Millisecond)
		since := strconv.FormatInt(h.clock().UnixMilli(), 10)
		if a := b.get("/connect/claude-code?since=" + since); strings.Contains(a.body, "It works.") || !strings.Contains(a.body, "No client has connected") {
			t.Errorf("written: %t: it is ticked by a call before", written)
		}
	}
	since := strconv.FormatInt(h.clock().UnixMilli(), 10)
	h.use(h.ada, h.space.ID, "Claude Code")
	must(t, h.Flush(t.Context())) // which is not to lose the second
	if a := b.get("/connect/claude-code?since=" + since); !strings.Contains(a.body, "It works.") {
		t.Error("it is not ticked by a call after")
	}
}

// The whole command is visible before anybody copies it, also without a script.
func TestTheCommandIsSeenWhole(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.eve)
	for _, slug := range []string{"claude-code", "vscode"} {
		a := b.get("/connect/" + slug)
		_, text, ok := strings.Cut(a.body, `<code id="command"`)
		text, _, _ = strings.Cut(text, "</code>")
		// An option such as --scope must not be broken after a hyphen.
		if !ok || !strings.Contains(html.UnescapeString(strings.ReplaceAll(text, "<wbr>", "")), issuer+"/mcp") || !strings.Contains(text, `<span class="word">--`) || !strings.Contains(a.body, `data-copy="command"`) {
			t.Errorf("%s: %q", slug, text)
		}
	}
	if css := b.get("/static/connect.css").body; !strings.Contains(css, ".copy .command") || !strings.Contains(css, "white-space: pre-wrap") {
		t.Error("it is one line")
	}
}

// Each client has a mark of its own.
func TestTheMarksOfClients(t *testing.T) {
	w := newWorld(t)
	body := w.as(w.eve).get("/connect").body
	seen := map[string]bool{}
	for _, part := range strings.Split(body, `<span class="mark"`)[1:] {
		mark, _, _ := strings.Cut(part[strings.Index(part, ">")+1:], "</span>")
		if mark == "" || seen[mark] {
			t.Errorf("the mark %q stands for no client, or for two", mark)
		}
		seen[mark] = true
	}
	if n := strings.Count(body, `href="/connect/`); n == 0 || n != len(seen) {
		t.Errorf("%d clients have %d marks", n, len(seen))
	}
}

// Before admins create the App, the page says that other people need it to be public.
func TestAnAppForOthersIsAskedFor(t *testing.T) {
	h := newHubWorld(t)
	h.noApp()
	if a := h.as(h.ada).get("/admin/github"); strings.Contains(a.body, "everybody here can connect") || !strings.Contains(a.body, "only you can connect") {
		t.Error("it promises everybody")
	}
}

// A page without a script lists what the server refused since it was opened: to a person what came from
// their own address, and to an admin everything. A client that arrived ends the list.
func TestRefusedRequestsOnTheConnectPages(t *testing.T) {
	var asked []string
	key := false
	c := callers{}
	h := newHubWorld(t, func(o *web.Options) {
		o.Called = c.of
		o.Address = func(*http.Request) string { return "192.0.2.7" }
		o.Refused = func(address string, all bool) []web.RefusedRequest {
			asked = append(asked, address+" "+strconv.FormatBool(all))
			at := o.Now()
			return []web.RefusedRequest{{Name: "<i>cursor", Asked: "POST /mcp", Status: 401, Why: "No <b>token.", Key: key, At: at}, {Name: "old", At: at.Add(-time.Hour)}}
		}
	})
	since := "?since=" + strconv.FormatInt(h.clock().UnixMilli(), 10)
	for _, b := range []*browser{h.as(h.ada), h.as(h.eve)} {
		a := b.get("/connect/cursor" + since)
		if !strings.Contains(a.body, "&lt;i&gt;cursor") || !strings.Contains(a.body, "No &lt;b&gt;token.") || strings.Contains(a.body, "<bdi>old</bdi>") {
			t.Error("the page does not list the refused request alone")
		}
		if strings.Contains(a.body, `<li class="problem"`) || !strings.Contains(a.body, "data-refused-note hidden") {
			t.Error("the page takes a client that has not signed in for a problem")
		}
	}
	if a := h.as(h.eve).get("/connect/key" + since); !strings.Contains(a.body, `<li class="problem"`) {
		t.Error("a program without a key is no problem")
	}
	key = true
	if a := h.as(h.eve).get("/connect/cursor" + since); !strings.Contains(a.body, `<li class="problem"`) || strings.Contains(a.body, "data-refused-note hidden") {
		t.Error("a refused key is no problem")
	}
	key = false
	if want := []string{"192.0.2.7 true", "192.0.2.7 false"}; len(asked) < 2 || !slices.Equal(asked[:2], want) {
		t.Errorf("it asked for %v, not %v", asked, want)
	}
	h.pass(time.Second)
	h.keyCalls(c, h.ada, h.space.ID, "a key", "cursor-vscode/1.0.0")
	if a := h.as(h.ada).get("/connect/cursor" + since); !strings.Contains(a.body, "data-refused hidden") {
		t.Error("the list stays after the client has called")
	}
}

// The arrival of a client ends the list of earlier requests without a sign-in only on the page of that
// client.
func TestAnotherClientDoesNotEndTheListOfRefusedRequests(t *testing.T) {
	var refused time.Time
	h := newHubWorld(t, func(o *web.Options) {
		o.Refused = func(string, bool) []web.RefusedRequest {
			return []web.RefusedRequest{{Name: "a client", Asked: "POST /mcp", Status: 401, At: refused}}
		}
	})
	since := "?since=" + strconv.FormatInt(h.clock().UnixMilli(), 10)
	refused = h.clock()
	h.pass(time.Second)
	b := h.as(h.ada)
	_, err := h.Redeem(t.Context(), auth.Redemption{Code: h.consented(b), Client: "client", RedirectURI: redirect, Verifier: verifier, Resource: issuer + "/mcp"}) // Clara
	must(t, err)
	for slug, listed := range map[string]bool{"cursor": true, "other": false} {
		if strings.Contains(b.get("/connect/"+slug+since).body, "is not signed in yet") != listed {
			t.Errorf("%s: the request is listed: %t", slug, !listed)
		}
	}
}

// The key that a page of a client needs may change files.
func TestTheKeyFromAConnectPageMayChangeFiles(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	for _, slug := range []string{"code", "key"} {
		_, link, _ := strings.Cut(b.get("/connect/"+slug).body, `href="/account/keys?`)
		query, _, _ := strings.Cut(link, "#")
		for path, ticked := range map[string]bool{"/account/keys": false, "/account/keys?" + query: true} {
			if strings.Contains(b.get(path).body, `name="write" value="1" checked`) != ticked {
				t.Errorf("%s: the box is ticked: %t", path, !ticked)
			}
		}
	}
}
