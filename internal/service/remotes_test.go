package service_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/sandbox/pending"
	"satchel/tools/index"
)

// remoteWorld is a World with a search index and a git server, whose token is
// "canary-token".
type remoteWorld struct {
	*servicetest.World
	t      *testing.T
	server *remotetest.Server
	ref    service.SpaceRef // as the operator names the space
	index  *index.Index
}

func newRemoteWorld(t *testing.T) *remoteWorld {
	w := &remoteWorld{World: servicetest.New(t, time.Now), t: t, server: remotetest.New(t, remotetest.Options{Password: "canary-token"}), ref: service.SpaceRef{User: "owner"}}
	w.server.Create("notes")
	w.index = openIndex(t, w.World)
	return w
}

func (w *remoteWorld) set(change func(*service.SetRemoteInput)) (service.SpaceStatus, error) {
	in := service.SetRemoteInput{Space: w.ref, URL: w.server.URL("notes"), Token: "canary-token", Trusted: true}
	if change != nil {
		change(&in)
	}
	return w.SetRemote(w.t.Context(), service.Operator(), in)
}

func (w *remoteWorld) purge(in service.PurgeSecretsInput) (service.PurgeResult, error) {
	in.Space = w.ref
	return w.PurgeSecrets(w.t.Context(), service.Operator(), in)
}

// indexed returns the commit that searches see.
func (w *remoteWorld) indexed() space.CommitID {
	w.t.Helper()
	st, err := w.index.Status(w.t.Context(), w.Space)
	if err != nil {
		w.t.Fatal(err)
	}
	return st.Commit
}

func (w *remoteWorld) status() service.SpaceStatus {
	w.t.Helper()
	st, err := w.GetSpaceStatus(w.t.Context(), service.Operator(), service.GetSpaceStatusInput{Space: w.ref})
	if err != nil {
		w.t.Fatal(err)
	}
	return st
}

func (w *remoteWorld) sync() service.SpaceStatus {
	w.t.Helper()
	st, err := w.SyncRemote(w.t.Context(), service.Operator(), service.SyncRemoteInput{Space: w.ref})
	if err != nil {
		w.t.Fatal(err)
	}
	return st
}

func (w *remoteWorld) head() space.CommitID {
	w.t.Helper()
	head, err := w.Git.Head(w.t.Context(), w.Space)
	if err != nil {
		w.t.Fatal(err)
	}
	return head
}

// githubToken looks like a token of GitHub.
var githubToken = "ghp_" + strings.Repeat("aB3dE5gH7j", 3) + "kL9m2Q"

func TestRemotes(t *testing.T) {
	w := newRemoteWorld(t)
	ctx := t.Context()
	if st := w.status(); st.State != space.RemoteLocal || st.Remote != nil || len(st.Held) != 0 {
		t.Fatalf("at first: %+v", st)
	}
	if _, err := w.SyncRemote(ctx, service.Operator(), service.SyncRemoteInput{Space: w.ref}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a sync without a remote: %v", err)
	}
	if _, err := w.set(func(in *service.SetRemoteInput) { in.Trusted = false }); fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.PublicOf(err), "--trusted") {
		t.Errorf("a private host without --trusted: %v", err)
	}
	// Attack: a space that is its own remote.
	own := w.status().Space.Repository
	for _, url := range []string{own, "file://" + own, filepath.Dir(own) + "/../" + filepath.Base(filepath.Dir(own))} {
		if _, err := w.set(func(in *service.SetRemoteInput) { in.URL = url }); fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.PublicOf(err), "own data directory") {
			t.Errorf("%s: %v", url, err)
		}
	}
	// Attack: a person uses what is the operator's.
	for _, in := range []service.SetRemoteInput{{Trusted: true}, {Replace: true}, {WithSecrets: true}} {
		in.Space, in.URL = service.SpaceRef{ID: w.Space}, w.server.URL("notes")
		if _, err := w.SetRemote(ctx, service.Person(w.Owner), in); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%+v: %v", in, err)
		}
	}
	st, err := w.set(func(in *service.SetRemoteInput) { in.Token = "wrong" })
	if err != nil || st.State != space.RemoteFailed || st.Problem != transport.Auth || st.Remedy == "" {
		t.Errorf("with a wrong token: %+v, %v", st, err)
	}
	var steps []string
	ctx = service.WithProgress(ctx, func(step string) { steps = append(steps, step) })
	st, err = w.SetRemote(ctx, service.Operator(), service.SetRemoteInput{Space: w.ref, URL: w.server.URL("notes"), Token: "canary-token", Trusted: true})
	if err != nil || st.State != space.RemotePushed || string(st.Head) != w.server.Head("notes", "main") || len(steps) == 0 {
		t.Fatalf("with the right one: %+v, %v, %q", st, err, steps)
	}
	if states, err := w.ListRemoteStates(ctx, service.Person(w.Owner), service.ListRemoteStatesInput{}); err != nil || len(states) != 1 || states[w.Space] != space.RemotePushed {
		t.Errorf("%v, %v", states, err)
	}
	if _, err := w.Held.Save(ctx, w.Owner.ID, w.Space, []pending.File{{Path: "kept.md", Content: []byte("x"), Why: "No."}}, nil); err != nil {
		t.Fatal(err)
	}
	if st := w.status(); len(st.Held) != 1 || st.Held[0].Path != "kept.md" {
		t.Errorf("%+v", st.Held)
	}
	if _, err := w.RemoveRemote(ctx, service.Operator(), service.RemoveRemoteInput{Space: w.ref}); err != nil {
		t.Error(err)
	}
	if st := w.status(); st.State != space.RemoteLocal || st.Remote != nil {
		t.Errorf("after the removal: %+v", st)
	}
	entries, err := w.Accounts.Audit(ctx, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	did := map[string]bool{}
	for _, e := range entries {
		did[e.Action] = true
		if e.Action == "space.remote.set" && (e.Subject != string(w.Space) || !strings.Contains(e.Detail, w.server.URL("notes"))) {
			t.Errorf("%+v does not name the remote", e)
		}
		if strings.Contains(e.Detail, "canary") {
			t.Errorf("the audit log has the token: %+v", e)
		}
	}
	if !did["space.remote.set"] || !did["space.remote.remove"] {
		t.Errorf("the audit log has %v", did)
	}
}

// Attack: a key that was saved before anything screened it goes out with the first push.
// A purge removes it, also from commits that only the remote judged.
func TestPurge(t *testing.T) {
	w := newRemoteWorld(t)
	ctx := t.Context()
	w.Write(map[string]string{"old.md": "a\n" + githubToken + "\n"})
	found, err := w.set(nil)
	if err != nil || len(found.Secrets) != 1 || found.Secrets[0].Path != "old.md" || found.Secrets[0].Line != 2 || found.State != space.RemoteLocal || w.server.Head("notes", "main") != "" {
		t.Fatalf("%+v, %v", found, err)
	}
	dry, err := w.purge(service.PurgeSecretsInput{DryRun: true})
	if err != nil || dry.Commits != 1 || !slices.Equal(dry.Files, []space.Path{"old.md"}) || w.indexed() == dry.Head {
		t.Errorf("a dry run: %+v, %v", dry, err)
	}
	if done, err := w.purge(service.PurgeSecretsInput{}); err != nil || done.Commits != 1 || done.Head == dry.Head || w.indexed() != done.Head {
		t.Errorf("a purge without a remote: %+v, %v", done, err)
	}
	if st, err := w.set(nil); err != nil || st.State != space.RemotePushed {
		t.Fatalf("%+v, %v", st, err)
	}

	w.Write(map[string]string{"bad.md": "one\npassword: opensesame\nthree\n"})
	bad := w.head()
	w.Write(map[string]string{"good.md": "good\n", "other.md": githubToken + "\n"})
	for _, in := range []service.PurgeSecretsInput{{File: true}, {Line: 2}, {Path: "bad.md", Line: 2, File: true}, {Path: "bad.md", Line: 99}, {Path: "../x"}} {
		if _, err := w.purge(in); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", in, err)
		}
	}
	done, err := w.purge(service.PurgeSecretsInput{Path: "bad.md", Line: 2, At: bad.Short()})
	if err != nil || done.Commits != 2 || !slices.Equal(done.Files, []space.Path{"bad.md"}) {
		t.Fatalf("a line: %+v, %v", done, err)
	}
	if st := w.sync(); st.State != space.RemotePushed {
		t.Fatalf("%+v", st)
	}
	if got, _ := w.server.File("notes", "main", "bad.md"); strings.Contains(got, "opensesame") || !strings.HasPrefix(got, "one\n") || !strings.HasSuffix(got, "three\n") {
		t.Errorf("bad.md is %q", got)
	}
	if got, _ := w.server.File("notes", "main", "good.md"); got != "good\n" {
		t.Errorf("good.md is %q", got)
	}
	if got, _ := w.server.File("notes", "main", "other.md"); got != githubToken+"\n" {
		t.Errorf("the purge of a line changed other.md: %q", got)
	}
	w.Write(map[string]string{"whole.md": "secret\n"})
	if done, err := w.purge(service.PurgeSecretsInput{Path: "whole.md", File: true}); err != nil || done.Commits != 1 {
		t.Errorf("a file: %+v, %v", done, err)
	}
	if done, err := w.purge(service.PurgeSecretsInput{}); err != nil || done.Commits != 0 || done.Files == nil {
		t.Errorf("nothing: %+v, %v", done, err)
	}

	// Attack: a remote that calls prose a secret gets it removed from the history.
	w.Write(map[string]string{"diary.md": "Dear diary, it was a long day.\nThe end.\n"})
	w.server.Refuse("notes", "main", remotetest.PushProtection("main", string(w.head()), "diary.md", 1))
	if st := w.sync(); st.Problem != transport.Secret || len(st.Locations) != 1 {
		t.Fatalf("%+v", st)
	}
	left, err := w.purge(service.PurgeSecretsInput{})
	if err != nil || left.Commits != 0 || len(left.Unclear) != 1 || left.Unclear[0].Path != "diary.md" {
		t.Errorf("on the word of a remote: %+v, %v", left, err)
	}
	if acts, err := w.Accounts.Audit(ctx, 0, 100); err != nil || !slices.ContainsFunc(acts, func(e store.Entry) bool { return e.Action == "space.purge" }) {
		t.Errorf("%+v, %v", acts, err)
	}
}

// A token in a commit's message or in an author's name is found before the first push,
// and a purge leaves the rest of the history as it was.
func TestPurgeOfMessages(t *testing.T) {
	w := newRemoteWorld(t)
	ctx := t.Context()
	name := "glp" + "at-" + "aB3dE5gH7jkL9m2Qx8Zw"
	for i, m := range []space.Meta{{Message: "Note the tea"}, {Message: "Use " + githubToken + "\n\nin CI"}, {Author: space.Person{Name: name, Email: "x@example.org"}}, {Message: "Note the milk"}} {
		cs := space.ChangeSet{Changes: []space.Change{{Path: fmt.Sprintf("%d.md", i), Content: []byte("a note\n")}}}
		if _, err := w.Git.Commit(ctx, w.Space, cs, m); err != nil {
			t.Fatal(err)
		}
	}
	before, err := w.Git.Log(ctx, w.Space, space.LogQuery{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := w.set(nil)
	if err != nil || len(found.Secrets) != 2 || w.server.Head("notes", "main") != "" {
		t.Fatalf("%+v, %v", found.Secrets, err)
	}
	for i, at := range []space.CommitID{before[1].ID, before[2].ID} { // the newest first
		if f := found.Secrets[i]; f.Path != "" || f.Commit != at || f.Line != 1 {
			t.Errorf("%+v", f)
		}
	}
	for _, dry := range []bool{true, false} {
		if done, err := w.purge(service.PurgeSecretsInput{DryRun: dry}); err != nil || done.Words != 2 || len(done.Files) != 0 {
			t.Errorf("%+v, %v", done, err)
		}
	}
	after, err := w.Git.Log(ctx, w.Space, space.LogQuery{})
	if err != nil || len(after) != len(before) {
		t.Fatalf("%d commits, %v", len(after), err)
	}
	for i, c := range after {
		b := before[i]
		message, author := strings.ReplaceAll(b.Message, githubToken, secretscan.Redacted), strings.ReplaceAll(b.Author.Name, name, secretscan.Redacted)
		if c.Message != message || c.Author.Name != author || c.Author.Email != b.Author.Email || !c.Time.Equal(b.Time) {
			t.Errorf("%+v was %+v", c, b)
		}
	}
	if st, err := w.set(nil); err != nil || st.State != space.RemotePushed {
		t.Errorf("after the purge: %+v, %v", st, err)
	}
}

func TestAllowances(t *testing.T) {
	w := newRemoteWorld(t)
	ctx, print := t.Context(), strings.Repeat("0a", 10)
	if _, err := w.AllowSecret(ctx, service.Operator(), service.AllowSecretInput{Space: w.ref, Fingerprint: print}); err != nil {
		t.Error(err)
	}
	if list, err := w.ListAllowedSecrets(ctx, service.Operator(), service.ListAllowedSecretsInput{Space: w.ref}); err != nil || len(list) != 1 || list[0].Fingerprint != print || list[0].By != "command line" {
		t.Errorf("%+v, %v", list, err)
	}
	for i, want := range []fault.Code{"", fault.NotFound} {
		if _, err := w.DisallowSecret(ctx, service.Operator(), service.DisallowSecretInput{Space: w.ref, Fingerprint: print}); i == 0 && err != nil || i == 1 && fault.CodeOf(err) != want {
			t.Errorf("%d: %v", i, err)
		}
	}
	acts, err := w.Accounts.Audit(ctx, 0, 100)
	for _, action := range []string{"space.secret.allow", "space.secret.disallow"} {
		if err != nil || !slices.ContainsFunc(acts, func(e store.Entry) bool { return e.Action == action && e.Subject == string(w.Space) }) {
			t.Errorf("the audit log lacks %s, %v", action, err)
		}
	}
}

// Attack: a token in an address gets into the audit log.
func TestPublicURLHoldsNoSecret(t *testing.T) {
	for address, want := range map[string]string{
		"https://ann:canary@git.example.com:8443/a/b.git?token=canary#canary": "https://git.example.com:8443/a/b.git",
		" https://git.example.com/a ":                                         "https://git.example.com/a",
		"git@example.com:canary":                                              "",
		"canary":                                                              "",
		"https://%zz:canary@x":                                                "",
	} {
		if got := service.PublicURL(address); got != want {
			t.Errorf("%q is %q, want %q", address, got, want)
		}
	}
}

// A former owner's token pushes nothing more, and nothing is kept for a removed person.
func TestRemotesEndWithTheirOwner(t *testing.T) {
	w := newRemoteWorld(t)
	ctx := t.Context()
	if _, err := w.AddUser(ctx, service.Operator(), service.AddUserInput{Name: "heir", Admin: true}); err != nil {
		t.Fatal(err)
	}
	if st, err := w.set(nil); err != nil || st.State != space.RemotePushed {
		t.Fatalf("%+v, %v", st, err)
	}
	for _, to := range []string{"heir", "owner"} {
		if _, err := w.GiveSpace(ctx, service.Operator(), service.GiveSpaceInput{Space: service.SpaceRef{ID: w.Space}, To: service.UserRef{Name: to}}); err != nil {
			t.Fatal(err)
		}
		if w.Remotes.Has(w.Space) {
			t.Error("the remote of a given space is still there")
		}
	}
	if _, err := w.set(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Held.Save(ctx, w.Owner.ID, w.Space, []pending.File{{Path: "kept.md", Content: []byte("x"), Why: "No."}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.RemoveUser(ctx, service.Operator(), service.RemoveUserInput{User: service.UserRef{Name: "owner"}}); err != nil {
		t.Fatal(err)
	}
	if items, err := w.Held.List(ctx, w.Owner.ID, w.Space); err != nil || len(items) != 0 || w.Remotes.Has(w.Space) {
		t.Errorf("%+v, remote %v, %v", items, w.Remotes.Has(w.Space), err)
	}
}
