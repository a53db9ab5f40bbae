package server

import (
	"testing"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// The operator and the members of a space read and change its history by the same
// operations, each under their own name.
func TestHistory(t *testing.T) {
	ctx := t.Context()
	c := testCore(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ann := addUser(t, c.Service, "ann", true)
	own, err := c.Accounts.SpacesOf(ctx, ann.ID)
	must(err)
	asAnn, at := service.Person(ann), service.SpaceRef{ID: own[0].ID}
	write := func(changes ...space.Change) (space.Commit, error) {
		return c.Service.WriteFiles(ctx, asAnn, service.WriteFilesInput{Space: at, Changes: changes, Message: "Write"})
	}
	first, err := write(space.Change{Path: "a/x.md", Content: []byte("one\n")})
	must(err)
	if first.Author.Name != "ann" || first.Tool != space.ToolWeb || first.Client != "browser" {
		t.Errorf("%+v", first)
	}
	second, err := write(space.Change{Path: "a/x.md", Content: []byte("two\n"), Base: first.Files[0].New})
	must(err)

	// All or nothing.
	if _, err := write(space.Change{Path: "b.md", Content: []byte("b")}, space.Change{Path: ".git/config", Content: []byte("x")}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a change that is refused in part: %v", err)
	}
	if _, _, ok, err := c.Git.Blob(ctx, at.ID, "", "b.md"); ok || err != nil {
		t.Errorf("its other part stays: %v", err)
	}

	named := service.SpaceRef{User: "ann"}
	list, err := c.Service.ListCommits(ctx, service.Operator(), service.ListCommitsInput{Space: named, LogQuery: space.LogQuery{Path: "a/", Limit: 1}})
	if err != nil || len(list) != 1 || list[0].ID != second.ID {
		t.Errorf("%+v, %v", list, err)
	}
	for _, path := range []space.Path{"nothing", "../x"} {
		if _, err := c.Service.ListCommits(ctx, service.Operator(), service.ListCommitsInput{Space: named, LogQuery: space.LogQuery{Path: path}}); err == nil {
			t.Errorf("the history of %q", path)
		}
	}
	shown, err := c.Service.ShowCommit(ctx, service.Operator(), service.ShowCommitInput{Space: named, Commit: " " + second.ID.Short(), Path: "a"})
	if err != nil || len(shown.Files) != 1 || shown.Patch == "" || shown.Author.Name != "ann" {
		t.Errorf("%+v, %v", shown, err)
	}
	shown, err = c.Service.ShowCommit(ctx, service.Operator(), service.ShowCommitInput{Space: named, Commit: string(first.ID), Path: "a/x.md", Content: true})
	if err != nil || string(shown.Content) != "one\n" {
		t.Errorf("%+v, %v", shown, err)
	}
	if _, err := c.Service.ShowCommit(ctx, service.Operator(), service.ShowCommitInput{Space: named, Commit: "HEAD", Content: true}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("the content of no file: %v", err)
	}

	back, err := c.Service.Restore(ctx, service.Operator(), service.RestoreInput{Space: named, Commit: string(first.ID), Path: "a"})
	if err != nil || !back.Changed || back.Author.Name != "ann" || back.Tool != space.ToolRestore {
		t.Errorf("%+v, %v", back, err)
	}
	undone, err := c.Service.Revert(ctx, asAnn, service.RevertInput{Space: at, Commits: []space.CommitID{back.ID}})
	if err != nil || !undone.Changed || undone.Tool != space.ToolWebRevert {
		t.Errorf("%+v, %v", undone, err)
	}
	log, err := c.Accounts.Audit(ctx, 0, 1)
	must(err)
	if log[0].Action != "space.revert" || log[0].Subject != string(at.ID) || log[0].Actor != (store.Actor{User: ann.ID, Via: "web"}) {
		t.Errorf("%+v", log[0])
	}
}
