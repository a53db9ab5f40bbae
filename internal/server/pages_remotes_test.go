package server

import (
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
)

// A refused request allows no secret and changes nothing.
func TestSetRefusesBeforeItAllows(t *testing.T) {
	ctx := t.Context()
	c := testCore(t)
	p := pageRemotes{&Server{Core: c}}
	ann := addUser(t, c.Service, "ann", false)
	own, err := c.Accounts.SpacesOf(ctx, ann.ID)
	if err != nil {
		t.Fatal(err)
	}
	key := "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"
	if _, err := c.Git.Commit(ctx, own[0].ID, space.ChangeSet{Changes: []space.Change{{Path: "key.md", Content: []byte(key + "\n")}}}, space.Meta{}); err != nil {
		t.Fatal(err)
	}
	shown := []string{c.secrets.Scan("", []byte(key))[0].Fingerprint}
	for _, tt := range []struct {
		name       string
		form       web.NewRemote
		found, set bool
		says       string
	}{
		{name: "Attack: this machine", form: web.NewRemote{URL: "https://127.0.0.1/x.git", AllowSecrets: shown}, says: "The operator of this server"},
		{name: "a branch that is none", form: web.NewRemote{URL: "https://git.invalid/x.git", Branch: "-f", AllowSecrets: shown}, says: "branch"},
		{name: "known secrets", form: web.NewRemote{URL: "https://git.invalid/x.git"}, found: true},
		{name: "yes", form: web.NewRemote{URL: "https://git.invalid/x.git", AllowSecrets: shown}, set: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.form.Space = own[0].ID
			found, err := p.Set(ctx, ann.ID, tt.form)
			if tt.says == "" && err != nil || tt.says != "" && (fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.PublicOf(err), tt.says)) {
				t.Errorf("it says %v", err)
			}
			if (len(found) > 0) != tt.found {
				t.Errorf("%d found", len(found))
			}
			allowed, err := c.secrets.List(ctx, own[0].ID)
			if err != nil || c.remotes.Has(own[0].ID) != tt.set || (len(allowed) > 0) != tt.set {
				t.Errorf("set: %v, allowed: %v, %v", c.remotes.Has(own[0].ID), allowed, err)
			}
			acts, err := c.Accounts.AuditOf(ctx, store.AuditFilter{Act: "space.secret.allow"}, 0, 10)
			if err != nil || (len(acts) > 0) != tt.set {
				t.Errorf("%v %v", acts, err)
			}
		})
	}
}
