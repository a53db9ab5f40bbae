package tools_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"satchel/gitstore"
	"satchel/gitstore/damagetest"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
)

// TestDamagedFiles: over a real store and a real index, what is damaged is named,
// with what to do, and all else works; written again it is as before.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	open := func() *gitstore.Store {
		store, err := gitstore.Open(gitstore.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	store := open()
	cs := gitstore.StartingTree()
	texts := map[string]string{"knowledge/tea.md": "# Tea\n\nGreen oolong.\n", "knowledge/coffee.md": "# Coffee\n\nBlack as night.\n"}
	for p, c := range texts {
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte(c)})
	}
	id := space.NewSpaceID()
	first, err := store.Create(t.Context(), id, cs, space.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	damaged := []space.Path{"knowledge/tea.md", "resources/instructions.md", "skills/tidy-notes/SKILL.md"}
	blobs := map[space.Path]space.BlobID{}
	for _, f := range first.Files {
		blobs[f.Path] = f.New
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range damaged {
		damagetest.TurnByte(t, filepath.Join(dir, string(id)+".git"), "main:"+string(p))
	}
	store = open()
	t.Cleanup(func() { _ = store.Close() })
	x := openIndex(t)
	if err := x.Update(t.Context(), id, store); err != nil {
		t.Fatal(err)
	}
	set, err := tools.New(tools.Options{Service: searching(x, service.Options{Git: store}), Workspace: store, PublicURL: func() string { return "https://satchel.example" }})
	if err != nil {
		t.Fatal(err)
	}
	c := editor(in(id))
	call := func(name, args string) tools.Result {
		t.Helper()
		r, err := set.Call(t.Context(), c, name, json.RawMessage(args), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}

	check(t, call("read", `{"paths":["knowledge/tea.md"]}`), true, "knowledge/tea.md", "satchel doctor")
	both := call("read", `{"paths":["knowledge/tea.md","knowledge/coffee.md"]}`)
	check(t, both, false, "satchel doctor", "Black as night.")
	if files := both.Meta["files"].([]map[string]any); files[0]["error"] != string(fault.Damaged) {
		t.Errorf("%v", files)
	}
	check(t, call("read", `{"paths":["knowledge/"]}`), false, "tea.md", "coffee.md")
	check(t, call("instructions", `{}`), false, "resources/instructions.md", "satchel doctor", "knowledge/")
	check(t, call("search", `{"query":"night"}`), false, "knowledge/coffee.md", "satchel doctor", "knowledge/tea.md")
	check(t, call("search", `{"query":"oolong"}`), false, "satchel doctor", "Nothing found")

	// A damaged file cannot be edited, but it can be written again.
	check(t, call("edit", `{"path":"knowledge/tea.md","edits":[{"old":"Green","new":"Black"}]}`), true, "satchel doctor")
	check(t, call("write", `{"path":"knowledge/tea.md","content":"# Tea\n"}`), true, string(blobs["knowledge/tea.md"]))
	check(t, call("write", `{"path":"skills/tidy-notes/SKILL.md","content":"Whole.\n","base_etag":"`+string(blobs["skills/tidy-notes/SKILL.md"])+`"}`), false, "Changed")
	check(t, call("read", `{"paths":["skills/tidy-notes/SKILL.md"]}`), false, "Whole.")

	// Later commits are indexed, and the file once it is whole.
	commit := func(files map[string]string) {
		t.Helper()
		cs := space.ChangeSet{Policy: space.KeepBoth}
		for p, text := range files {
			cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte(text), Base: blobs[space.Path(p)]})
		}
		if _, err := store.Commit(t.Context(), id, cs, space.Meta{}); err != nil {
			t.Fatal(err)
		}
		if err := x.Update(t.Context(), id, store); err != nil {
			t.Fatal(err)
		}
	}
	commit(map[string]string{"knowledge/water.md": "# Water\n\nStill.\n"})
	check(t, call("search", `{"query":"water still"}`), false, "knowledge/water.md", "knowledge/tea.md")
	commit(map[string]string{"knowledge/tea.md": texts["knowledge/tea.md"], "resources/instructions.md": "Be brief.\n", "skills/tidy/SKILL.md": "---\nname: tidy\ndescription: Tidy.\n---\n"})
	check(t, call("search", `{"query":"oolong"}`), false, "knowledge/tea.md", "!satchel doctor")
	check(t, call("read", `{"paths":["knowledge/tea.md"]}`), false, "Green oolong.")
	check(t, call("instructions", `{}`), false, "Be brief.", "skills/tidy/", "!satchel doctor")
}
