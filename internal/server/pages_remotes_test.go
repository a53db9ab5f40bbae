package server

import (
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// A refused request allows no secret and changes nothing.
func TestSetRefusesBeforeItAllows(t *testing.T) {
	ctx := t.Context()
	c := testCore(t)
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
		form       service.SetRemoteInput
		found, set bool
		says       string
	}{
		{name: "Attack: this machine", form: service.SetRemoteInput{URL: "https://127.0.0.1/x.git", AllowSecrets: shown}, says: "The operator of this server"},
		{name: "a branch that is none", form: service.SetRemoteInput{URL: "https://git.invalid/x.git", Branch: "-f", AllowSecrets: shown}, says: "branch"},
		{name: "known secrets", form: service.SetRemoteInput{URL: "https://git.invalid/x.git"}, found: true},
		{name: "yes", form: service.SetRemoteInput{URL: "https://git.invalid/x.git", AllowSecrets: shown}, set: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.form.Space, tt.form.MaxSecrets, tt.form.Wait = service.SpaceRef{ID: own[0].ID}, listedSecrets, time.Nanosecond
			st, err := c.Service.SetRemote(ctx, service.Person(store.User{ID: ann.ID}), tt.form)
			if tt.says == "" && err != nil || tt.says != "" && (fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.PublicOf(err), tt.says)) {
				t.Errorf("it says %v", err)
			}
			if (len(st.Secrets) > 0) != tt.found {
				t.Errorf("%d found", len(st.Secrets))
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
