package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/gitstore/damagetest"
	"satchel/gitstore/remotes"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/transport"
	"satchel/internal/admin"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/seal"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/sandbox/pending"
)

// newLocal is a Service on a directory of its own.
func newLocal(t *testing.T) *admin.Local {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "spaces")
	db := databasetest.Open(t, databasetest.SQLite(t))
	if _, err := db.Migrate(t.Context(), slices.Concat(store.Migrations(), remotes.Migrations(), secretscan.Migrations())...); err != nil {
		t.Fatal(err)
	}
	client := transport.New(transport.Options{})
	git, err := gitstore.Open(gitstore.Options{Dir: dir, Transport: client})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	box, err := seal.Load(filepath.Join(t.TempDir(), "server.key"))
	must(err)
	secrets, err := secretscan.New(secretscan.Options{DB: db})
	must(err)
	kept, err := pending.Open(pending.Options{Dir: filepath.Join(t.TempDir(), "held"), Seal: box})
	must(err)
	accounts := store.New(db, store.Options{})
	links := remotes.New(remotes.Options{
		DB: db, Git: git, Transport: client, Seal: box,
		Backoff: remotes.Backoff{Min: time.Hour, Max: time.Hour},
	})
	must(links.Load(t.Context()))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(links.Close(ctx), accounts.Close(), git.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
	return &admin.Local{
		Service: service.New(service.Options{Accounts: accounts, Git: git, Remotes: links, Held: kept, Secrets: secrets, SpacesDir: dir}), Accounts: accounts, Git: git, SpacesDir: dir, Running: admin.Info{Version: "v1", URL: "http://127.0.0.1:1/mcp"},
		Remotes: links, Secrets: secrets, Held: kept, Logger: slog.New(slog.DiscardHandler),
		Purged: func(context.Context, space.SpaceID) error { return nil },
	}
}

// addUser adds a person.
func addUser(t *testing.T, s admin.Service, name string, isAdmin bool) store.User {
	t.Helper()
	u, err := admin.Do(t.Context(), s, (*service.Service).AddUser, service.AddUserInput{Name: name, Admin: isAdmin})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestRemotesBothWays sets, syncs, purges and removes a remote directly and over
// the socket.
func TestRemotesBothWays(t *testing.T) {
	for _, over := range []struct {
		name string
		of   func(t *testing.T, l *admin.Local) admin.Service
	}{
		{"directly", func(_ *testing.T, l *admin.Local) admin.Service { return l }},
		{"over the socket", func(t *testing.T, l *admin.Local) admin.Service { return over(t, l, slog.New(slog.DiscardHandler)) }},
	} {
		t.Run(over.name, func(t *testing.T) {
			ctx := t.Context()
			l := newLocal(t)
			s := over.of(t, l)
			server := remotetest.New(t, remotetest.Options{Password: "canary-token"})
			server.Create("notes")
			ann := addUser(t, s, "ann", true)
			addUser(t, s, "root", true)
			st, err := s.SpaceStatus(ctx, "ann")
			if err != nil || st.State != remotes.Local || st.Remote != nil || len(st.Held) != 0 {
				t.Fatalf("at first: %+v, %v", st, err)
			}
			if _, err := s.Sync(ctx, "ann", func(string) {}); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("a sync without a remote: %v", err)
			}
			// Attack: a key that was saved while nothing screened it goes out with the
			// first push.
			key := "ghp_" + strings.Repeat("aB3dE5gH7j", 3) + "kL9m2Q"
			if _, err := l.Git.Commit(ctx, st.Space.ID, space.ChangeSet{Changes: []space.Change{{Path: "old.md", Content: []byte("a\n" + key + "\n")}}}, space.Meta{}); err != nil {
				t.Fatal(err)
			}
			found, err := s.SetRemote(ctx, admin.RemoteRequest{User: "ann", URL: server.URL("notes"), Token: "canary-token", Trusted: true}, func(string) {})
			if err != nil || len(found.Secrets) != 1 || found.Secrets[0].Path != "old.md" || found.Secrets[0].Line != 2 || found.State != remotes.Local {
				t.Fatalf("%+v, %v", found, err)
			}
			if server.Head("notes", "main") != "" {
				t.Fatal("it was pushed all the same")
			}
			dry, err := s.Purge(ctx, admin.PurgeRequest{User: "ann", DryRun: true}, func(string) {})
			if err != nil || dry.Commits != 1 || !slices.Equal(dry.Files, []space.Path{"old.md"}) {
				t.Errorf("a dry run: %+v, %v", dry, err)
			}
			if again, err := s.Purge(ctx, admin.PurgeRequest{User: "ann"}, func(string) {}); err != nil || again.Commits != 1 || again.Head == dry.Head {
				t.Errorf("a purge before there is a remote: %+v, %v", again, err)
			}
			_, err = s.SetRemote(ctx, admin.RemoteRequest{User: "ann", URL: server.URL("notes"), Token: "canary-token"}, func(string) {})
			if fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.PublicOf(err), "--trusted") {
				t.Errorf("a private host without --trusted: %v", err)
			}
			st, err = s.SetRemote(ctx, admin.RemoteRequest{User: "ann", URL: server.URL("notes"), Token: "wrong", Trusted: true}, func(string) {})
			if err != nil || st.State != remotes.Failed || st.Problem != transport.Auth || st.Remedy == "" || st.Unpushed == 0 {
				t.Errorf("with a wrong token: %+v, %v", st, err)
			}
			var lines []string
			st, err = s.SetRemote(ctx, admin.RemoteRequest{User: "ann", URL: server.URL("notes"), Token: "canary-token", Trusted: true}, func(line string) { lines = append(lines, line) })
			if err != nil || st.State != remotes.Pushed || string(st.Head) != server.Head("notes", "main") || len(lines) == 0 {
				t.Fatalf("with the right one: %+v, %v, %q", st, err, lines)
			}

			// A secret that the remote alone finds is taken out of what it does not have.
			write := func(path, content string) {
				t.Helper()
				c, err := l.Git.Commit(ctx, st.Space.ID, space.ChangeSet{Changes: []space.Change{{Path: path, Content: []byte(content)}}}, space.Meta{})
				if err != nil || !c.Changed {
					t.Fatalf("%+v, %v", c, err)
				}
			}
			write("bad.md", "one\npassword: opensesame\nthree\n")
			bad, err := l.Git.Head(ctx, st.Space.ID)
			if err != nil {
				t.Fatal(err)
			}
			write("good.md", "good\n")
			for _, bad := range []admin.PurgeRequest{{User: "ann", File: true}, {User: "ann", Line: 2}, {User: "ann", Path: "bad.md", Line: 2, File: true}, {User: "ann", Path: "bad.md", Line: 99}, {User: "ann", Path: "../x"}} {
				if _, err := s.Purge(ctx, bad, func(string) {}); fault.CodeOf(err) != fault.Invalid {
					t.Errorf("%+v: %v", bad, err)
				}
			}
			purged, err := s.Purge(ctx, admin.PurgeRequest{User: "ann", Path: "bad.md", Line: 2, At: bad.Short()}, func(string) {})
			if err != nil || purged.Commits != 2 || !slices.Equal(purged.Files, []space.Path{"bad.md"}) {
				t.Fatalf("purge: %+v, %v", purged, err)
			}
			if st, err = s.Sync(ctx, "ann", func(string) {}); err != nil || st.State != remotes.Pushed {
				t.Fatalf("%+v, %v", st, err)
			}
			if got, _ := server.File("notes", "main", "bad.md"); strings.Contains(got, "opensesame") || !strings.HasPrefix(got, "one\n") || !strings.HasSuffix(got, "three\n") {
				t.Errorf("bad.md is %q", got)
			}
			if got, _ := server.File("notes", "main", "good.md"); got != "good\n" {
				t.Errorf("good.md is %q", got)
			}
			write("whole.md", "secret\n")
			if purged, err = s.Purge(ctx, admin.PurgeRequest{User: "ann", Path: "whole.md", File: true}, func(string) {}); err != nil || purged.Commits != 1 {
				t.Errorf("purge of a file: %+v, %v", purged, err)
			}
			if again, err := s.Purge(ctx, admin.PurgeRequest{User: "ann"}, func(string) {}); err != nil || again.Commits != 0 || again.Files == nil {
				t.Errorf("purge of nothing: %+v, %v", again, err)
			}

			// Attack: a remote that refuses a push and names prose as secrets has it
			// taken out of the history.
			write("diary.md", "Dear diary, it was a long day.\nThe end.\n")
			tip, err := l.Git.Head(ctx, st.Space.ID)
			if err != nil {
				t.Fatal(err)
			}
			server.Refuse("notes", "main", remotetest.PushProtection("main", string(tip), "diary.md", 1))
			if st, err = s.Sync(ctx, "ann", func(string) {}); err != nil || st.Problem != transport.Secret || len(st.Locations) != 1 {
				t.Fatalf("%+v, %v", st, err)
			}
			left, err := s.Purge(ctx, admin.PurgeRequest{User: "ann"}, func(string) {})
			if err != nil || left.Commits != 0 || len(left.Unclear) != 1 || left.Unclear[0].Path != "diary.md" {
				t.Errorf("a purge on a remote's word: %+v, %v", left, err)
			}
			if _, got, err := l.Git.Open(ctx, st.Space.ID, "", "diary.md"); err != nil || !strings.HasPrefix(string(got), "Dear diary") {
				t.Errorf("diary.md is %q, %v", got, err)
			}
			// Attack: a space that is its own remote.
			for _, own := range []string{st.Space.Repository, "file://" + st.Space.Repository, filepath.Dir(st.Space.Repository) + "/../" + filepath.Base(filepath.Dir(st.Space.Repository))} {
				if _, err := s.SetRemote(ctx, admin.RemoteRequest{User: "ann", URL: own, Trusted: true}, func(string) {}); fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.PublicOf(err), "own data directory") {
					t.Errorf("%s: %v", own, err)
				}
			}

			// What is allowed, and what is held.
			print := strings.Repeat("0a", 10)
			if err := s.AllowSecret(ctx, admin.AllowRequest{User: "ann", Fingerprint: print}); err != nil {
				t.Error(err)
			}
			if list, err := s.AllowedSecrets(ctx, "ann"); err != nil || len(list) != 1 || list[0].Fingerprint != print {
				t.Errorf("%+v, %v", list, err)
			}
			if err := s.AllowSecret(ctx, admin.AllowRequest{User: "ann", Fingerprint: print, Take: true}); err != nil {
				t.Error(err)
			}
			if err := s.AllowSecret(ctx, admin.AllowRequest{User: "ann", Fingerprint: print, Take: true}); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("taken back twice: %v", err)
			}
			if _, err := l.Held.Save(ctx, ann.ID, st.Space.ID, []pending.File{{Path: "kept.md", Content: []byte("x"), Why: "No."}}, nil); err != nil {
				t.Fatal(err)
			}
			if st, err = s.SpaceStatus(ctx, "ann"); err != nil || len(st.Held) != 1 || st.Held[0].Path != "kept.md" {
				t.Errorf("%+v, %v", st.Held, err)
			}

			if err := s.RemoveRemote(ctx, "ann"); err != nil {
				t.Error(err)
			}
			if st, err = s.SpaceStatus(ctx, "ann"); err != nil || st.State != remotes.Local || st.Remote != nil {
				t.Errorf("after the removal: %+v, %v", st, err)
			}
			entries, err := l.Accounts.Audit(ctx, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			var did []string
			for _, e := range entries {
				if strings.HasPrefix(e.Action, "space.") && e.Subject == string(st.Space.ID) {
					did = append(did, e.Action)
				}
				if e.Action == "space.remote.set" && !strings.Contains(e.Detail, server.URL("notes")) {
					t.Errorf("the audit log does not tell where to: %+v", e)
				}
				if strings.Contains(e.Detail, "canary") {
					t.Errorf("the audit log has the token: %+v", e)
				}
			}
			for _, want := range []string{"space.remote.set", "space.remote.remove", "space.purge", "space.secret.allow", "space.secret.disallow"} {
				if !slices.Contains(did, want) {
					t.Errorf("the audit log lacks %s: %q", want, did)
				}
			}
			// Who gives a space away keeps their token: nothing is pushed with it any more.
			if _, err := s.SetRemote(ctx, admin.RemoteRequest{User: "ann", URL: server.URL("notes"), Token: "canary-token", Trusted: true, WithSecrets: true}, func(string) {}); err != nil {
				t.Fatal(err)
			}
			addUser(t, s, "heir", true)
			for _, to := range []string{"heir", "ann"} {
				if _, err := admin.Do(ctx, s, (*service.Service).GiveSpace, service.GiveSpaceInput{Space: service.SpaceRef{ID: st.Space.ID}, To: service.UserRef{Name: to}}); err != nil {
					t.Fatal(err)
				}
				if l.Remotes.Has(st.Space.ID) {
					t.Error("the remote of a space that was given is still there")
				}
			}
			// What is held for a person goes with them, and so does their token.
			if _, err := s.SetRemote(ctx, admin.RemoteRequest{User: "ann", URL: server.URL("notes"), Token: "canary-token", Trusted: true, WithSecrets: true}, func(string) {}); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Held.Save(ctx, ann.ID, st.Space.ID, []pending.File{{Path: "kept.md", Content: []byte("x"), Why: "No."}}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := admin.Do(ctx, s, (*service.Service).RemoveUser, service.RemoveUserInput{User: service.UserRef{Name: "ann"}}); err != nil {
				t.Fatal(err)
			}
			if items, err := l.Held.List(ctx, ann.ID, st.Space.ID); err != nil || len(items) != 0 {
				t.Errorf("%+v, %v", items, err)
			}
			if l.Remotes.Has(st.Space.ID) {
				t.Error("the remote of a removed person is still there")
			}
		})
	}
}

// TestATokenInAMessageIsFoundBeforeTheFirstPush, by what sets a remote, and a purge
// takes it out and leaves the rest of the history as it was.
func TestATokenInAMessageIsFoundBeforeTheFirstPush(t *testing.T) {
	ctx := t.Context()
	l := newLocal(t)
	s := over(t, l, slog.New(slog.DiscardHandler))
	server := remotetest.New(t, remotetest.Options{Password: "canary-token"})
	server.Create("notes")
	addUser(t, s, "ann", true)
	st, err := s.SpaceStatus(ctx, "ann")
	if err != nil {
		t.Fatal(err)
	}
	id := st.Space.ID
	token := "ghp_" + strings.Repeat("aB3dE5gH7j", 3) + "kL9m2Q"
	name := "glp" + "at-" + "aB3dE5gH7jkL9m2Qx8Zw"
	for i, m := range []space.Meta{{Message: "Note the tea"}, {Message: "Use " + token + "\n\nin CI"}, {Author: space.Person{Name: name, Email: "x@example.org"}}, {Message: "Note the milk"}} {
		cs := space.ChangeSet{Changes: []space.Change{{Path: fmt.Sprintf("%d.md", i), Content: []byte("a note\n")}}}
		if _, err := l.Git.Commit(ctx, id, cs, m); err != nil {
			t.Fatal(err)
		}
	}
	before, err := l.Git.Log(ctx, id, space.LogQuery{})
	if err != nil {
		t.Fatal(err)
	}
	set := admin.RemoteRequest{User: "ann", URL: server.URL("notes"), Token: "canary-token", Trusted: true}
	found, err := s.SetRemote(ctx, set, func(string) {})
	if err != nil || len(found.Secrets) != 2 || server.Head("notes", "main") != "" {
		t.Fatalf("%+v, %v", found.Secrets, err)
	}
	for i, at := range []space.CommitID{before[1].ID, before[2].ID} { // the newest first
		if f := found.Secrets[i]; f.Path != "" || f.Commit != at || f.Line != 1 {
			t.Errorf("%+v", f)
		}
	}
	if dry, err := s.Purge(ctx, admin.PurgeRequest{User: "ann", DryRun: true}, func(string) {}); err != nil || dry.Words != 2 || len(dry.Files) != 0 {
		t.Errorf("a dry run: %+v, %v", dry, err)
	}
	if purged, err := s.Purge(ctx, admin.PurgeRequest{User: "ann"}, func(string) {}); err != nil || purged.Words != 2 || len(purged.Files) != 0 {
		t.Errorf("a purge: %+v, %v", purged, err)
	}
	after, err := l.Git.Log(ctx, id, space.LogQuery{})
	if err != nil || len(after) != len(before) {
		t.Fatalf("%d commits, %v", len(after), err)
	}
	for i, c := range after {
		b := before[i]
		message, author := strings.ReplaceAll(b.Message, token, secretscan.Redacted), strings.ReplaceAll(b.Author.Name, name, secretscan.Redacted)
		if c.Message != message || c.Author.Name != author || c.Author.Email != b.Author.Email || !c.Time.Equal(b.Time) {
			t.Errorf("%+v was %+v", c, b)
		}
	}
	if st, err = s.SetRemote(ctx, set, func(string) {}); err != nil || st.State != remotes.Pushed {
		t.Errorf("after the purge: %+v, %v", st, err)
	}
	if _, ok := server.File("notes", "main", "3.md"); !ok {
		t.Error("not all files are there")
	}
}

// TestARepairStopsSandboxes, which were started without what was damaged.
func TestARepairStopsSandboxes(t *testing.T) {
	ctx := t.Context()
	l := newLocal(t)
	addUser(t, l, "ann", true)
	st, err := l.SpaceStatus(ctx, "ann")
	if err != nil {
		t.Fatal(err)
	}
	id := st.Space.ID
	if _, err := l.Git.Commit(ctx, id, space.ChangeSet{Changes: []space.Change{{Path: "a.md", Content: []byte("a\n")}}}, space.Meta{}); err != nil {
		t.Fatal(err)
	}
	var stopped []space.SpaceID
	l.StopSpace = func(_ context.Context, id space.SpaceID) error {
		stopped = append(stopped, id)
		return nil
	}
	repo := filepath.Join(l.SpacesDir, string(id)+".git")
	whole := filepath.Join(t.TempDir(), "whole.git")
	if err := os.CopyFS(whole, os.DirFS(repo)); err != nil {
		t.Fatal(err)
	}
	from := admin.RepairRequest{SpaceRequest: admin.SpaceRequest{Name: string(id)}, From: whole}
	if done, err := l.RepairSpace(ctx, from, func(string) {}); err != nil || done.Restored != 0 || len(stopped) != 0 {
		t.Errorf("with nothing to repair: %+v, %v, stopped %q", done, err, stopped)
	}
	damagetest.TurnByte(t, repo, "main:a.md")
	if done, err := l.RepairSpace(ctx, from, func(string) {}); err != nil || done.Restored != 1 || !slices.Equal(stopped, []space.SpaceID{id}) {
		t.Errorf("%+v, %v, stopped %q", done, err, stopped)
	}
}
