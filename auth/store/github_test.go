package store_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/seal"
)

func newBox(t *testing.T) *seal.Box {
	t.Helper()
	box, err := seal.Load(filepath.Join(t.TempDir(), "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func githubApp(id int64) auth.GitHubApp {
	return auth.GitHubApp{
		URL: "https://github.com", ID: id, ClientID: "Iv23example", Slug: "satchel-example", Name: "Satchel example", Owner: "ann",
		HTMLURL: "https://github.com/apps/satchel-example", Creates: true,
		Secrets: auth.GitHubSecrets{ClientSecret: "canary-client-secret", PrivateKey: "canary-private-key", Webhook: "canary-webhook-secret"},
	}
}

func githubLink(u store.User, sp store.Space, repository int64) auth.RepositoryLink {
	return auth.RepositoryLink{
		Space: sp.ID, User: u.ID, GitHubUser: 11, GitHubLogin: "ann-gh", Installation: 5, Account: "acme",
		Repository: repository, FullName: "acme/notes", State: auth.LinkConnected,
	}
}

func TestGitHubApp(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		ann, sp := w.user("ann", true)
		if _, ok, err := w.GitHubApp(ctx); ok || err != nil {
			t.Fatalf("before: %v, %v", ok, err)
		}
		if err := w.SetGitHubApp(ctx, ann.ID, "web", githubApp(7)); err != nil {
			t.Fatal(err)
		}
		got, ok, err := w.GitHubApp(ctx)
		want := githubApp(7)
		want.Created = w.clock().Truncate(time.Millisecond)
		if err != nil || !ok || got != want {
			t.Errorf("the App: %+v, %v, %v", got, ok, err)
		}
		if got.Secrets.ClientSecret != "canary-client-secret" {
			t.Error("the client secret is another")
		}
		wantCode(t, "a second App", w.SetGitHubApp(ctx, ann.ID, "web", githubApp(8)), fault.Conflict)

		if err := w.LinkRepository(ctx, ann.ID, "web", githubLink(ann, sp, 70)); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		if err := w.RemoveGitHubApp(ctx, ann.ID, "web"); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := w.GitHubApp(ctx); ok || err != nil {
			t.Errorf("after: %v, %v", ok, err)
		}
		if l, ok, err := w.RepositoryLink(ctx, sp.ID); err != nil || !ok || l.State != auth.LinkRemoved || !l.Since.Equal(w.clock()) {
			t.Errorf("its link: %+v, %v, %v", l, ok, err)
		}
		if err := w.RemoveGitHubApp(ctx, ann.ID, "web"); err != nil {
			t.Errorf("again: %v", err)
		}
		if err := w.SetGitHubApp(ctx, ann.ID, "web", githubApp(8)); err != nil {
			t.Errorf("another one: %v", err)
		}
		if got := w.actions(); !strings.HasSuffix(got, "github.app.create github.link github.app.remove github.app.create") {
			t.Errorf("the audit log: %s", got)
		}
	})
}

// A copy of the database reveals nothing of the App's secrets. The secrets in a moved or
// changed row cannot be decrypted.
func TestGitHubSecretsAreSealed(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		ann, _ := w.user("ann", true)
		if err := w.SetGitHubApp(ctx, ann.ID, "web", githubApp(7)); err != nil {
			t.Fatal(err)
		}
		var rows []struct{ Secrets []byte }
		if err := w.db.Read(ctx).Raw("SELECT secrets FROM auth_github_app").Scan(&rows).Error; err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		if bytes.Contains(rows[0].Secrets, []byte("canary")) {
			t.Error("a secret is in the database as it is")
		}
		var entries []string
		if err := w.db.Read(ctx).Raw("SELECT detail FROM auth_audit").Scan(&entries).Error; err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.Join(entries, " "), "canary") {
			t.Error("a secret is in the audit log")
		}
		other := w.with(store.Options{Seal: newBox(t)})
		if _, _, err := other.GitHubApp(ctx); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("with another server's key: %v", err)
		}
		none := w.with(store.Options{})
		if _, _, err := none.GitHubApp(ctx); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("without a key: %v", err)
		}
		wantCode(t, "kept without a key", none.SetGitHubApp(ctx, ann.ID, "web", githubApp(9)), fault.Unavailable)
		err := w.db.Transact(ctx, func(tx *gorm.DB) error { return tx.Exec("UPDATE auth_github_app SET app_id = 8").Error })
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.GitHubApp(ctx); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("the secrets of another App: %v", err)
		}
	})
}

func TestRepositoryLinks(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		ann, sp := w.user("ann", true)
		bob, _ := w.user("bob", false)
		if err := w.AddMember(ctx, cli, sp.ID, bob.ID, "editor"); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "of no space", w.LinkRepository(ctx, ann.ID, "web", githubLink(ann, store.Space{ID: "s_none"}, 70)), fault.NotFound)
		wantCode(t, "by a member who does not own it", w.LinkRepository(ctx, bob.ID, "web", githubLink(bob, sp, 70)), fault.Forbidden)
		if err := w.AskForApproval(ctx, sp.ID, ann.ID); err != nil {
			t.Fatal(err)
		}
		if since, ok, err := w.PendingApproval(ctx, sp.ID); err != nil || !ok || !since.Equal(w.clock()) {
			t.Errorf("the wait: %v, %v, %v", since, ok, err)
		}
		if err := w.LinkRepository(ctx, ann.ID, "web", githubLink(ann, sp, 70)); err != nil {
			t.Fatal(err)
		}
		if _, ok, _ := w.PendingApproval(ctx, sp.ID); ok {
			t.Error("who is connected waits still")
		}
		first, ok, err := w.RepositoryLink(ctx, sp.ID)
		want := githubLink(ann, sp, 70)
		want.Since, want.Created = w.clock(), w.clock()
		if err != nil || !ok || first != want {
			t.Errorf("the link: %+v, %v, %v", first, ok, err)
		}

		w.pass(time.Minute)
		lost := first
		lost.State, lost.GitHubLogin, lost.FullName = auth.LinkLost, "ann-new", "acme/renamed"
		if changed, err := w.UpdateLink(ctx, first, lost); err != nil || !changed {
			t.Fatalf("lost: %v, %v", changed, err)
		}
		if got, _, _ := w.RepositoryLink(ctx, sp.ID); got.State != auth.LinkLost || !got.Since.Equal(w.clock()) || got.FullName != "acme/renamed" || !got.Created.Equal(first.Created) {
			t.Errorf("lost: %+v", got)
		}
		if changed, err := w.UpdateLink(ctx, first, first); err != nil || changed {
			t.Errorf("what was asked before that changed it: %v, %v", changed, err)
		}

		w.pass(time.Minute)
		if err := w.LinkRepository(ctx, ann.ID, "web", githubLink(ann, sp, 71)); err != nil {
			t.Fatal(err)
		}
		if changed, err := w.UpdateLink(ctx, lost, first); err != nil || changed {
			t.Errorf("another repository took its state: %v, %v", changed, err)
		}
		if all, err := w.RepositoryLinks(ctx); err != nil || len(all) != 1 || all[0].Repository != 71 || all[0].State != auth.LinkConnected {
			t.Errorf("all: %+v, %v", all, err)
		}
		for range 2 {
			if err := w.UnlinkRepository(ctx, ann.ID, "web", sp.ID); err != nil {
				t.Fatal(err)
			}
		}
		if _, ok, _ := w.RepositoryLink(ctx, sp.ID); ok {
			t.Error("it is connected still")
		}
		if got := w.actions(); !strings.HasSuffix(got, "github.ask github.link github.state github.link github.unlink") {
			t.Errorf("the audit log: %s", got)
		}
	})
}

// A connection depends on its person's right to push. It ends when the space gets another
// owner.
func TestLinksEndWithTheirOwner(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *world, ann, bob store.User, sp store.Space) error
	}{
		{"the space is given away", func(w *world, _, bob store.User, sp store.Space) error {
			return w.GiveSpace(w.t.Context(), cli, sp.ID, bob.ID)
		}},
		{"the person is removed", func(w *world, ann, _ store.User, _ store.Space) error {
			return w.RemoveUser(w.t.Context(), cli, ann.ID)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				ann, sp := w.user("ann", true)
				bob, _ := w.user("bob", true)
				if err := w.LinkRepository(t.Context(), ann.ID, "web", githubLink(ann, sp, 70)); err != nil {
					t.Fatal(err)
				}
				if err := w.AskForApproval(t.Context(), sp.ID, ann.ID); err != nil {
					t.Fatal(err)
				}
				if err := c.end(w, ann, bob, sp); err != nil {
					t.Fatal(err)
				}
				if w.count("auth_github_links")+w.count("auth_github_requests") != 0 {
					t.Error("the repository is connected still, or somebody waits")
				}
				if !strings.Contains(w.actions(), "github.unlink") {
					t.Error("nobody is told")
				}
			})
		})
	}
}

func TestDeliveriesAreSeenOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for i, want := range []bool{true, false, false} {
			if first, err := w.SeenDelivery(t.Context(), "aaaa"); err != nil || first != want {
				t.Errorf("time %d: %v, %v", i, first, err)
			}
		}
		for _, id := range []string{"", strings.Repeat("a", 101), "a\x00b", "\xff"} {
			if _, err := w.SeenDelivery(t.Context(), id); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
}

// A database from before the GitHub App keeps its people and spaces.
func TestMigrateFromVersion2(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		if _, err := db.Migrate(t.Context(), store.Migrations()[:2]...); err != nil {
			t.Fatal(err)
		}
		err := db.Transact(t.Context(), func(tx *gorm.DB) error {
			for _, stmt := range []string{
				`INSERT INTO auth_users (id, issuer, subject, name, display, email, admin, created, removed) VALUES ('u_1', 'local', 'u_1', 'ann', '', '', TRUE, 1, 0)`,
				`INSERT INTO auth_spaces VALUES ('s_1', 'ann', 'u_1', 1)`,
				`INSERT INTO auth_members VALUES ('s_1', 'u_1', 'owner', 1)`,
			} {
				if err := tx.Exec(stmt).Error; err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, db)
		ann, err := w.FindUser(t.Context(), "ann")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.LinkRepository(t.Context(), ann.ID, "web", githubLink(ann, store.Space{ID: "s_1"}, 70)); err != nil {
			t.Errorf("connected: %v", err)
		}
	})
}

// Whatever happens at once, there is no deadlock. In the end only the owner of a space has
// a repository connected to it.
func TestLinksInParallel(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		ann, sp := w.user("ann", true)
		bob, _ := w.user("bob", true)
		var work sync.WaitGroup
		try := func(what string, fine fault.Code, do func() error) {
			work.Go(func() {
				for range 5 {
					if err := do(); err != nil && fault.CodeOf(err) != fine {
						t.Errorf("%s: %v", what, err)
					}
				}
			})
		}
		try("ann connects", fault.Forbidden, func() error { return w.LinkRepository(ctx, ann.ID, "web", githubLink(ann, sp, 70)) })
		try("bob connects", fault.Forbidden, func() error { return w.LinkRepository(ctx, bob.ID, "web", githubLink(bob, sp, 71)) })
		try("ann disconnects", "", func() error { return w.UnlinkRepository(ctx, ann.ID, "web", sp.ID) })
		try("ann waits", "", func() error { return w.AskForApproval(ctx, sp.ID, ann.ID) })
		try("the space goes to bob", fault.Invalid, func() error { return w.GiveSpace(ctx, cli, sp.ID, bob.ID) })
		try("the space goes to ann", fault.Invalid, func() error { return w.GiveSpace(ctx, cli, sp.ID, ann.ID) })
		try("the App is made", fault.Conflict, func() error { return w.SetGitHubApp(ctx, ann.ID, "web", githubApp(7)) })
		try("the App is forgotten", "", func() error { return w.RemoveGitHubApp(ctx, ann.ID, "web") })
		try("GitHub says something", "", func() error {
			l, ok, err := w.RepositoryLink(ctx, sp.ID)
			if err != nil || !ok {
				return err
			}
			lost := l
			lost.State = auth.LinkLost
			_, err = w.UpdateLink(ctx, l, lost)
			return err
		})
		work.Wait()
		owner, err := w.Space(ctx, sp.ID)
		if err != nil {
			t.Fatal(err)
		}
		if l, ok, err := w.RepositoryLink(ctx, sp.ID); err != nil || ok && l.User != owner.Owner {
			t.Errorf("%s owns the space, and it is connected by %s, %v", owner.Owner, l.User, err)
		}
	})
}
