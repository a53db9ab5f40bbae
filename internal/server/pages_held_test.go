package server

import (
	"strings"
	"testing"

	"satchel/gitstore/remotes"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/held"
)

// What the pages show of held files has no secret in it, and what they allow is what
// the person saw, in their own file.
func TestPagesOfHeldFiles(t *testing.T) {
	ctx := t.Context()
	c := testCore(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]space.UserID{}
	for _, name := range []string{"ann", "bob"} {
		u, err := c.Admin.AddUser(ctx, name, false)
		must(err)
		ids[name] = u.ID
	}
	own, err := c.Accounts.SpacesOf(ctx, ids["ann"])
	must(err)
	id := own[0].ID
	bare := t.TempDir()
	must(testenv.Git(t, "", "init", "-q", "--bare", bare).Run())
	must(c.remotes.Set(ctx, remotes.SetRequest{Space: id, URL: bare, Trusted: true}))

	// Keys that look real; in pieces, so that no scanner stops at this file.
	first, second := "ghp"+"_"+"4fT9kQ2mZx7Lw1Rb8Vn3Yc6Jd5Hs0PgUaEiO", "ghp"+"_"+"9aB2cD4eF6gH8iJ1kL3mN5oP7qR0sT2uV4wX"
	why := func(text string) string {
		err := c.secrets.Screen(ctx, id, "x", []byte(text), nil)
		if fault.CodeOf(err) != fault.Forbidden {
			t.Fatalf("%v", err)
		}
		return fault.PublicOf(err)
	}
	put := func(who string, files ...held.File) {
		t.Helper()
		unkept, err := c.held.Save(ctx, ids[who], id, files, nil)
		if err != nil || len(unkept) > 0 {
			t.Fatal(unkept, err)
		}
	}
	secret := "# Notes\n\ntoken: " + first + "\n"
	put("ann", held.File{Path: "a.md", Content: []byte(secret), Why: why(secret), Code: fault.Forbidden},
		held.File{Path: "keys/" + first + ".md", Content: []byte("x"), Why: why(first), Code: fault.Forbidden},
		held.File{Path: "large", Content: []byte("y"), Why: "It has 90 MB.", Code: fault.TooLarge})
	put("bob", held.File{Path: "b.md", Content: []byte(second), Why: why(second), Code: fault.Forbidden})

	p := pageHeld{&Server{Core: c}}
	list, err := p.List(ctx, ids["ann"], id, 10)
	must(err)
	if len(list) != 3 || list[0].Path != "a.md" || len(list[0].Secrets) != 1 || list[0].Secrets[0].Line != 3 || len(list[1].Secrets) != 1 || len(list[2].Secrets) != 0 || list[2].Why != "It has 90 MB." {
		t.Fatalf("%+v", list)
	}
	for _, f := range list {
		if strings.Contains(f.Shown+f.Why, first) {
			t.Errorf("attack: a secret is shown: %q %q", f.Shown, f.Why)
		}
	}
	if paths, err := p.Paths(ctx, ids["bob"], id); err != nil || strings.Join(paths, " ") != "b.md" {
		t.Errorf("bob has %q, %v", paths, err)
	}
	hers := list[0].Secrets[0].Fingerprint
	bobs, err := p.List(ctx, ids["bob"], id, 10)
	must(err)
	his := bobs[0].Secrets[0].Fingerprint

	for name, err := range map[string]error{
		"another's fingerprint":  p.Allow(ctx, ids["ann"], id, "a.md", []string{his}),
		"none":                   p.Allow(ctx, ids["ann"], id, "a.md", nil),
		"another's file":         p.Allow(ctx, ids["bob"], id, "a.md", []string{hers}),
		"a file of another rule": p.Allow(ctx, ids["ann"], id, "large", []string{hers}),
	} {
		if c := fault.CodeOf(err); c != fault.Conflict && c != fault.NotFound {
			t.Errorf("attack: %s is allowed: %v", name, err)
		}
	}
	put("ann", held.File{Path: "a.md", Content: []byte(second), Why: why(second), Code: fault.Forbidden})
	if err := p.Allow(ctx, ids["ann"], id, "a.md", []string{hers}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("attack: what was exchanged under the person's eyes is allowed: %v", err)
	}
	if all, err := c.secrets.List(ctx, id); err != nil || len(all) != 0 {
		t.Fatalf("allowed: %+v, %v", all, err)
	}
	put("ann", held.File{Path: "a.md", Content: []byte(secret), Why: why(secret), Code: fault.Forbidden})
	must(p.Allow(ctx, ids["ann"], id, "a.md", []string{hers}))
	list, err = p.List(ctx, ids["ann"], id, 10)
	must(err)
	if !list[0].Allowed || len(list[0].Secrets) != 0 {
		t.Errorf("%+v", list[0])
	}
	if all, err := c.secrets.List(ctx, id); err != nil || len(all) != 1 || all[0].By != string(ids["ann"]) || all[0].Path != "a.md" {
		t.Errorf("allowed: %+v, %v", all, err)
	}

	for _, path := range []string{"", "/", "b.md", "nothing"} {
		if err := p.Discard(ctx, ids["ann"], id, path); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("attack: discarding %q: %v", path, err)
		}
	}
	must(p.Discard(ctx, ids["ann"], id, "large"))
	if paths, err := p.Paths(ctx, ids["ann"], id); err != nil || len(paths) != 2 {
		t.Errorf("left are %q, %v", paths, err)
	}
}
