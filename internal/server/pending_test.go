package server

import (
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/gitstore/remotes"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/pending"
)

// A list of pending files shows no secret. A person can allow only what they saw in a file
// of their own.
func TestPendingFiles(t *testing.T) {
	ctx := t.Context()
	c := testCore(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	people := map[string]store.User{}
	for _, name := range []string{"ann", "bob"} {
		people[name] = addUser(t, c.Service, name, false)
	}
	own, err := c.Accounts.SpacesOf(ctx, people["ann"].ID)
	must(err)
	id := own[0].ID
	must(c.Accounts.AddMember(ctx, store.Actor{Via: "test"}, id, people["bob"].ID, space.Editor))
	ref := service.SpaceRef{ID: id}
	list := func(who string) []space.PendingFile {
		t.Helper()
		all, err := c.Service.ListPendingFiles(ctx, service.Person(people[who]), service.ListPendingFilesInput{Space: ref, Inspect: 10})
		must(err)
		return all
	}
	allow := func(who, path string, fingerprints ...string) error {
		_, err := c.Service.AllowPendingSecrets(ctx, service.Person(people[who]), service.AllowPendingSecretsInput{Space: ref, Path: path, Fingerprints: fingerprints})
		return err
	}
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
	put := func(who string, files ...pending.File) {
		t.Helper()
		unkept, err := c.held.Save(ctx, people[who].ID, id, files, nil)
		if err != nil || len(unkept) > 0 {
			t.Fatal(unkept, err)
		}
	}
	secret := "# Notes\n\ntoken: " + first + "\n"
	put("ann", pending.File{Path: "a.md", Content: []byte(secret), Why: why(secret), Code: fault.Forbidden},
		pending.File{Path: "keys/" + first + ".md", Content: []byte("x"), Why: why(first), Code: fault.Forbidden},
		pending.File{Path: "large", Content: []byte("y"), Why: "It has 90 MB.", Code: fault.TooLarge})
	put("bob", pending.File{Path: "b.md", Content: []byte(second), Why: why(second), Code: fault.Forbidden})

	anns := list("ann")
	if len(anns) != 3 || anns[0].Path != "a.md" || len(anns[0].Secrets) != 1 || anns[0].Secrets[0].Line != 3 || len(anns[1].Secrets) != 1 || len(anns[2].Secrets) != 0 || anns[2].Why != "It has 90 MB." {
		t.Fatalf("%+v", anns)
	}
	for _, f := range anns {
		if strings.Contains(f.Shown+f.Why, first) {
			t.Errorf("attack: a secret is shown: %q %q", f.Shown, f.Why)
		}
	}
	bobs := list("bob")
	if len(bobs) != 1 || bobs[0].Path != "b.md" {
		t.Fatalf("bob has %+v", bobs)
	}
	hers := anns[0].Secrets[0].Fingerprint
	his := bobs[0].Secrets[0].Fingerprint

	for name, err := range map[string]error{
		"another's fingerprint":  allow("ann", "a.md", his),
		"none":                   allow("ann", "a.md"),
		"another's file":         allow("bob", "a.md", hers),
		"a file of another rule": allow("ann", "large", hers),
	} {
		if c := fault.CodeOf(err); c != fault.Conflict && c != fault.NotFound {
			t.Errorf("attack: %s is allowed: %v", name, err)
		}
	}
	put("ann", pending.File{Path: "a.md", Content: []byte(second), Why: why(second), Code: fault.Forbidden})
	if err := allow("ann", "a.md", hers); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("attack: what was exchanged under the person's eyes is allowed: %v", err)
	}
	if all, err := c.secrets.List(ctx, id); err != nil || len(all) != 0 {
		t.Fatalf("allowed: %+v, %v", all, err)
	}
	put("ann", pending.File{Path: "a.md", Content: []byte(secret), Why: why(secret), Code: fault.Forbidden})
	must(allow("ann", "a.md", hers))
	anns = list("ann")
	if !anns[0].Allowed || len(anns[0].Secrets) != 0 {
		t.Errorf("%+v", anns[0])
	}
	if all, err := c.secrets.List(ctx, id); err != nil || len(all) != 1 || all[0].By != string(people["ann"].ID) || all[0].Path != "a.md" {
		t.Errorf("allowed: %+v, %v", all, err)
	}

	discard := func(path string) error {
		_, err := c.Service.DiscardPendingFile(ctx, service.Person(people["ann"]), service.DiscardPendingFileInput{Space: ref, Path: path})
		return err
	}
	for _, path := range []string{"", "/", "b.md", "nothing"} {
		if err := discard(path); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("attack: discarding %q: %v", path, err)
		}
	}
	must(discard("large"))
	if anns = list("ann"); len(anns) != 2 {
		t.Errorf("left are %+v", anns)
	}
	// The operator acts for the person whom they name.
	n, err := c.Service.DiscardPendingFile(ctx, service.Operator(), service.DiscardPendingFileInput{Space: service.SpaceRef{User: "ann"}, Path: "a.md"})
	if err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
}
