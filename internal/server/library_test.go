package server

import (
	"encoding/json"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
)

// What a purge takes out of a space goes from what is published of it too, and who
// suspends or removes an owner ends what they published.
func TestPublishedSpacesFollowTheirOwners(t *testing.T) {
	ctx := t.Context()
	c := testCore(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	people := map[string]space.UserID{}
	for _, name := range []string{"ann", "bob", "eve"} {
		u := addUser(t, c.Service, name, name == "eve")
		people[name] = u.ID
	}
	own, err := c.Accounts.SpacesOf(ctx, people["ann"])
	must(err)
	id := own[0].ID
	_, err = c.Git.Commit(ctx, id, space.ChangeSet{Changes: []space.Change{
		{Path: "knowledge/a.md", Content: []byte("# Alpha\n")}, {Path: "knowledge/key.md", Content: []byte("# Quixotic\n\nnot for others\n")},
	}}, space.Meta{})
	must(err)
	_, err = c.Git.Commit(ctx, id, space.ChangeSet{Changes: []space.Change{
		{Path: "ops/deploy.md", Content: []byte("# Deploy\n\n" + aKey(1) + "\n")}, {Path: "ops/how.md", Content: []byte("Set password: <yours>\n")},
	}}, space.Meta{})
	must(err)
	if p, err := c.Service.PreviewSource(ctx, service.Operator(), service.PreviewSourceInput{Space: service.SpaceRef{ID: id}, Dir: "ops", Limit: 10}); err != nil || len(p.Secrets) != 1 || p.Secrets[0] != "deploy.md" {
		t.Errorf("before publishing a key it is warned of %v, %v", p.Secrets, err)
	}
	s, err := c.Service.PublishSource(ctx, service.Operator(), service.PublishSourceInput{
		Space: service.SpaceRef{User: "ann"}, Source: space.Source{ID: "notes", Dir: "knowledge"}, Readers: []string{"bob"},
	})
	must(err)
	if s.Everybody || strings.Join(s.Readers, " ") != "bob" || s.State != "ready" {
		t.Errorf("published: %+v", s)
	}
	set, err := tools.New(tools.Options{
		Service: c.Service, Workspace: workspace{c.Git, c.remotes}, Library: c.library(), PublicURL: func() string { return "" },
	})
	must(err)
	read := func(who, path string) string {
		t.Helper()
		mine, err := c.Accounts.SpacesOf(ctx, people[who])
		must(err)
		reader := tools.Caller{Actor: service.Client(auth.Principal{User: people[who], Space: mine[0].ID, Scopes: []space.Scope{space.ScopeRead}}, "mcp")}
		args, _ := json.Marshal(map[string]any{"paths": []string{path}})
		r, err := set.Call(ctx, reader, "read", args, nil)
		must(err)
		return r.Content[0].Text
	}
	if got := read("bob", "/library/docs/notes/key.md"); !strings.Contains(got, "not for others") {
		t.Errorf("bob reads %q", got)
	}
	if got := read("eve", "/library/docs/notes/key.md"); strings.Contains(got, "not for others") {
		t.Errorf("attack: eve, an admin, reads %q", got)
	}
	_, err = c.Service.PurgeSecrets(ctx, service.Operator(), service.PurgeSecretsInput{Space: service.SpaceRef{User: "ann"}, Path: "knowledge/key.md", File: true})
	must(err)
	if got := read("bob", "/library/docs/notes/"); strings.Contains(got, "key.md") || !strings.Contains(got, "a.md") {
		t.Errorf("after the purge bob lists %q", got)
	}
	if got := read("bob", "/library/docs/notes/key.md"); strings.Contains(got, "not for others") {
		t.Errorf("after the purge bob reads %q", got)
	}
	_, err = c.Service.PublishSource(ctx, service.Operator(), service.PublishSourceInput{Space: service.SpaceRef{User: "bob"}, Source: space.Source{ID: "notes", Dir: "knowledge", Everybody: true}})
	if fault.CodeOf(err) != fault.Conflict && fault.CodeOf(err) != fault.Invalid {
		t.Errorf("attack: bob takes the name: %v", err)
	}
	_, err = c.Service.PublishSource(ctx, service.Operator(), service.PublishSourceInput{Space: service.SpaceRef{User: "bob"}, Source: space.Source{ID: "mine", Dir: "memory", Everybody: true}})
	if fault.CodeOf(err) != fault.Invalid || fault.FieldOf(err) != space.SourceMemory {
		t.Errorf("memory without a word: %v", err)
	}
	removeUser(t, c.Service, "ann")
	if got := read("bob", "/library/docs/notes/a.md"); strings.Contains(got, "Alpha") {
		t.Errorf("after its owner was removed bob reads %q", got)
	}
	if all, err := c.Service.ListSources(ctx, service.Operator(), service.ListSourcesInput{User: "bob"}); err != nil || len(all) != 0 {
		t.Errorf("bob is listed %v, %v", all, err)
	}
}
