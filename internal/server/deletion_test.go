package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"gorm.io/gorm"

	"satchel/auth/store"
	"satchel/gitstore/remotes"
	"satchel/gitstore/remotetest"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/pending"
)

// doomed is a server of two people with a space that is going to be deleted.
type doomed struct {
	*running
	ann, ben store.User
	id       space.SpaceID
	kept     string // the key of ann's first space
}

func doom(r *running) *doomed {
	r.t.Helper()
	ctx := r.t.Context()
	d := &doomed{running: r, kept: r.key}
	must := func(err error) {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
	}
	d.ben = addUser(r.t, r.Service, "ben", false)
	var err error
	d.ann, err = r.Accounts.FindUser(ctx, "ann")
	must(err)
	sp, err := r.Service.CreateSpace(ctx, service.Operator(), service.CreateSpaceInput{Name: "garden"})
	must(err)
	d.id = sp.ID
	must(r.Accounts.AddMember(ctx, store.Actor{Via: "test"}, sp.ID, d.ben.ID, space.Editor))
	d.running.key = d.keyOf(d.ann)
	return d
}

func (d *doomed) keyOf(u store.User) string {
	d.t.Helper()
	_, key, err := d.Accounts.CreateKey(d.t.Context(), store.Actor{Via: "test"}, store.NewKey{User: u.ID, Space: d.id, Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}})
	if err != nil {
		d.t.Fatal(err)
	}
	return key.Reveal()
}

func (d *doomed) delete() (service.SpaceDeletion, error) {
	return d.Service.DeleteSpace(d.t.Context(), service.Operator(), service.DeleteSpaceInput{Space: service.SpaceRef{Name: "garden"}})
}

// gone fails where something of the space is left on disk or in the database.
func (d *doomed) gone() {
	d.t.Helper()
	_ = filepath.WalkDir(d.Config.DataDir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && strings.Contains(p, string(d.id)) {
			d.t.Errorf("%s is left", p)
		}
		return nil
	})
	var tables []string
	err := d.DB.Read(d.t.Context()).Raw(`SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'space_id'`).Scan(&tables).Error
	if err != nil || len(tables) < 10 {
		d.t.Fatalf("%v, %v", tables, err)
	}
	for _, table := range tables {
		var n int
		if err := d.DB.Read(d.t.Context()).Raw("SELECT COUNT(*) FROM "+table+" WHERE space_id = ?", string(d.id)).Scan(&n).Error; err != nil || n > 0 {
			d.t.Errorf("%s has %d rows, %v", table, n, err)
		}
	}
	if list, err := d.Accounts.DeletedSpaces(d.t.Context()); err != nil || len(list) != 1 || !list[0].Ended {
		d.t.Errorf("deleted are %+v, %v", list, err)
	}
}

// Everything of a space goes, whatever hangs on it, and nothing of another.
func TestADeletedSpaceLeavesNothing(t *testing.T) {
	d := doom(boot(t, settings(t)))
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := d.Git.Commit(ctx, d.id, space.ChangeSet{Changes: []space.Change{
		{Path: "knowledge/tea.md", Content: []byte("Assam, in the morning.\n")}, {Path: "resources/brief.md", Content: []byte("Be brief.\n")},
	}}, space.Meta{Author: space.Person{Name: "Ann", Email: "ann@example.com"}, Tool: "bash", Client: "claude"})
	must(err)
	_, err = d.Service.PublishSource(ctx, service.Operator(), tea(d.id))
	must(err)
	_, err = d.held.Save(ctx, d.ben.ID, d.id, []pending.File{{Path: "late.md", Mode: space.Regular, Content: []byte("late"), Why: "it was late"}}, nil)
	must(err)
	if got := d.ask("search", `{"query":"Assam"}`); !strings.Contains(got, "tea.md") {
		t.Fatalf("search: %s", got)
	}
	must(d.Git.Warm(ctx, d.id))
	owner, member := d.listening(d.running.key), d.listening(d.keyOf(d.ben))

	res, err := d.delete()
	if err != nil || !res.Deleted || res.Members != 1 || res.Sources != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	testenv.Receive(t, "the owner's client", owner)
	testenv.Receive(t, "a member's client", member)
	d.gone()
	if got := d.ask("instructions", "{}"); !strings.HasPrefix(got, "401") {
		t.Errorf("its key: %s", got)
	}
	if got := d.library().All(); len(got) > 0 {
		t.Errorf("published are %+v", got)
	}
	d.running.key = d.kept
	if got := d.ask("search", `{"query":"Assam"}`); strings.Contains(got, "tea.md") || strings.HasPrefix(got, "401") {
		t.Errorf("a search in the other space: %s", got)
	}
	if _, err := d.delete(); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("deleting it again: %v", err)
	}
	if log := d.log.String(); strings.Contains(log, `"level":"ERROR"`) || strings.Contains(log, "level=ERROR") {
		t.Errorf("the log has errors: %s", log)
	}
}

// A command that runs is ended, and what it wrote is nowhere.
func TestASpaceIsDeletedWhileACommandRuns(t *testing.T) {
	d := doom(boot(t, withSandboxes(t)))
	res := d.call("bash", `{"command":"trap 'echo saved > knowledge/late.md; exit 3' TERM; echo under way; while :; do sleep 0.05; done"}`)
	defer res.Body.Close()
	until(t, res.Body, "under way")
	if _, err := d.delete(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Logf("the answer ended with %v", err)
	}
	if n := d.bash.pool.Status().Sandboxes; n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
	d.gone()
	if got := d.ask("bash", `{"command":"echo hi"}`); !strings.HasPrefix(got, "401") {
		t.Errorf("another command: %s", got)
	}
}

// A push that is under way is cut off, and the repository at the remote stays.
func TestASpaceIsDeletedWhileItIsPushed(t *testing.T) {
	remote := remotetest.New(t, remotetest.Options{})
	remote.Create("garden")
	remote.Push("garden", "main", map[string]string{"theirs.md": "stays"})
	cfg := settings(t)
	cfg.Remotes.AllowNetworks = []string{"127.0.0.0/8"}
	_, port, _ := strings.Cut(remote.Host(), ":")
	cfg.Remotes.AllowPorts = []string{port}
	d := doom(boot(t, cfg))
	at := make(chan struct{})
	remote.Inject(func(r remotetest.Request) remotetest.Fault {
		if r.Stage == remotetest.StagePush {
			return remotetest.Fault{Name: "stuck", Request: remotetest.Trouble{Do: func() { close(at) }, Stall: true}}
		}
		return remotetest.Fault{}
	})
	if err := d.remotes.Set(t.Context(), remotes.SetRequest{Space: d.id, URL: remote.URL("garden"), Trusted: true}); err != nil {
		t.Fatal(err)
	}
	<-at
	pushing := make(chan error, 1)
	go func() {
		_, err := d.remotes.Sync(context.Background(), d.id, nil)
		pushing <- err
	}()
	res, err := d.delete()
	if err != nil || res.Remote != remote.URL("garden") || res.Unpushed == 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if err := <-pushing; fault.CodeOf(err) != fault.NotFound {
		t.Errorf("who waits for the sync: %v", err)
	}
	d.gone()
	if text, ok := remote.File("garden", "main", "theirs.md"); !ok || text != "stays" {
		t.Errorf("the remote has %q", text)
	}
	remote.Inject(nil)
	remote.Fsck("garden")
}

// A deletion that a crash cut off is taken up at the next start, from each step.
func TestADeletionIsTakenUp(t *testing.T) {
	for _, reached := range []string{"the row alone", "all but the repository", "all but the note of it"} {
		t.Run(reached, func(t *testing.T) {
			cfg := settings(t)
			first := boot(t, cfg)
			d := doom(first)
			if _, err := d.Git.Commit(t.Context(), d.id, space.ChangeSet{Changes: []space.Change{{Path: "knowledge/tea.md", Content: []byte("Assam\n")}}},
				space.Meta{Author: space.Person{Name: "Ann", Email: "ann@example.com"}, Tool: "bash", Client: "claude"}); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Service.PublishSource(t.Context(), service.Operator(), tea(d.id)); err != nil {
				t.Fatal(err)
			}
			id := d.id
			first.end()
			core, err := OpenCore(t.Context(), cfg, "test", d.Log)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := core.Accounts.DeleteSpace(t.Context(), store.Actor{Via: "test"}, id, ""); err != nil {
				t.Fatal(err)
			}
			switch reached {
			case "all but the repository":
				err = core.remotes.Remove(t.Context(), id)
			case "all but the note of it":
				err = core.Git.Delete(t.Context(), id)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := core.Close(); err != nil {
				t.Fatal(err)
			}
			again := boot(t, cfg)
			testenv.Receive(t, "the end of the deletion", again.deletions.begin(id))
			(&doomed{running: again, id: id}).gone()
		})
	}
}

// What another process deleted in the database that both use is gone here, too.
func TestASpaceIsDeletedElsewhere(t *testing.T) {
	d := doom(boot(t, settings(t)))
	open := d.listening(d.running.key)
	if _, err := d.Accounts.DeleteSpace(t.Context(), store.Actor{Via: "elsewhere"}, d.id, ""); err != nil {
		t.Fatal(err)
	}
	testenv.Receive(t, "the stream", open)
	d.deletions.mu.Lock()
	done := d.deletions.by[d.id]
	d.deletions.mu.Unlock()
	if done == nil {
		t.Fatal("nobody ends it")
	}
	<-done
	d.gone()
}

// By the pages: the owner deletes it, and who looks at the same moment finds nothing.
func TestASpaceIsDeletedOnThePages(t *testing.T) {
	d := doom(boot(t, settings(t)))
	remove := func(u store.User) error {
		_, err := d.Service.DeleteSpace(t.Context(), service.Person(u), service.DeleteSpaceInput{Space: service.SpaceRef{ID: d.id}})
		return err
	}
	if err := remove(d.ben); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("ATTACK: by a member: %v", err)
	}
	if _, err := d.Service.GiveSpace(t.Context(), service.Person(d.ann), service.GiveSpaceInput{Space: service.SpaceRef{ID: d.id}, To: service.UserRef{ID: d.ben.ID}}); err != nil {
		t.Fatal(err)
	}
	if err := remove(d.ann); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("ATTACK: by the former owner: %v", err)
	}
	if err := remove(d.ben); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Git.Head(t.Context(), d.id); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("at once: %v", err)
	}
	<-d.deletions.begin(d.id)
	d.gone()
	if status, _, _ := get(t, fmt.Sprintf("%s/spaces/%s", d.localURL(), d.id)); status == http.StatusInternalServerError {
		t.Errorf("its page: %d", status)
	}
}

// ATTACK: a gift that a crash, an error or another process cut off after the new owner
// was written down. What they do is not pushed with the former owner's token.
func TestAGiftEndsTheRemote(t *testing.T) {
	cfg := settings(t)
	d := doom(boot(t, cfg))
	set := func(r *running) {
		t.Helper()
		if err := r.remotes.Set(t.Context(), remotes.SetRequest{Space: d.id, URL: "https://git.invalid/notes"}); err != nil {
			t.Fatal(err)
		}
	}
	by := store.Actor{Via: "test"}
	set(d.running)
	if err := d.Accounts.GiveSpace(t.Context(), by, d.id, d.ben.ID); err != nil {
		t.Fatal(err)
	}
	testenv.WaitFor(t, "the space has no remote any more", func() bool {
		acts, err := d.Accounts.AuditOf(t.Context(), store.AuditFilter{Act: "space.remote.remove"}, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(acts) > 0 && (acts[0].Subject != string(d.id) || acts[0].Actor != by || d.remotes.Has(d.id)) {
			t.Errorf("while the server runs: %+v, left: %v", acts[0], d.remotes.Has(d.id))
		}
		return len(acts) > 0
	})
	set(d.running)
	d.end()

	core, err := OpenCore(t.Context(), cfg, "test", d.Log)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(core.Accounts.GiveSpace(t.Context(), by, d.id, d.ann.ID), core.Close()); err != nil {
		t.Fatal(err)
	}
	again := boot(t, cfg)
	if again.remotes.Has(d.id) {
		t.Error("at the next start: the space has its remote still")
	}
	set(again)
	again.end()
	if last := boot(t, cfg); !last.remotes.Has(d.id) {
		t.Error("what the new owner has set is gone")
	}
}

// Whose remote could not be removed is told that the space is given all the same.
func TestAGiftStandsWhereTheRemoteCannotBeRemoved(t *testing.T) {
	cfg := settings(t)
	d := doom(boot(t, cfg))
	if err := d.remotes.Set(t.Context(), remotes.SetRequest{Space: d.id, URL: "https://git.invalid/notes"}); err != nil {
		t.Fatal(err)
	}
	exec := func(r *running, sql string) {
		t.Helper()
		if err := r.DB.Transact(t.Context(), func(tx *gorm.DB) error { return tx.Exec(sql).Error }); err != nil {
			t.Fatal(err)
		}
	}
	exec(d.running, `CREATE TRIGGER stuck BEFORE DELETE ON remotes BEGIN SELECT RAISE(FAIL, 'the table is stuck'); END`)
	if _, err := d.Service.GiveSpace(t.Context(), service.Person(d.ann), service.GiveSpaceInput{Space: service.SpaceRef{ID: d.id}, To: service.UserRef{ID: d.ben.ID}}); err != nil {
		t.Errorf("on the page: %v", err)
	}
	if log := d.log.String(); !strings.Contains(log, "remove the remote of a given space") || !strings.Contains(log, "the table is stuck") {
		t.Errorf("the log has %s", log)
	}
	_, err := d.Service.GiveSpace(t.Context(), service.Operator(), service.GiveSpaceInput{Space: service.SpaceRef{User: "ben", Name: "garden"}, To: service.UserRef{Name: "ann"}})
	if !strings.HasPrefix(fault.PublicOf(err), "The space was transferred, but its remote") {
		t.Errorf("by the command: %v", err)
	}
	exec(d.running, "DROP TRIGGER stuck")
	d.end()
	if again := boot(t, cfg); again.remotes.Has(d.id) {
		t.Error("the next start leaves the remote")
	}
}

// tea publishes knowledge/ of a space as "tea".
func tea(id space.SpaceID) service.PublishSourceInput {
	return service.PublishSourceInput{Space: service.SpaceRef{ID: id}, Source: space.Source{ID: "tea", SourceText: space.SourceText{Title: "Tea"}, Dir: "knowledge", Everybody: true}}
}
