package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/auth/github/app"
	"satchel/auth/github/apptest"
	"satchel/auth/store"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/sources/syncs"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// withFile is a server with a configuration file, beside a git repository.
type withFile struct {
	*running
	git              *remotetest.Server
	file, repository string
}

func startConfigured(t *testing.T, change ...func(*config.Config, *remotetest.Server)) *withFile {
	t.Helper()
	git := remotetest.New(t, remotetest.Options{})
	git.Create("docs")
	git.Push("docs", "main", map[string]string{"a.md": "# Alpha"})
	c := &withFile{git: git, repository: git.URL("docs")}
	cfg := settings(t)
	for _, f := range change {
		f(cfg, git)
	}
	c.file = filepath.Join(t.TempDir(), "satchel.yaml")
	cfg.File = c.file
	c.write(t, c.entry("handbook"))
	var err error
	if cfg.Sources, err = config.LoadSources(c.file, CheckSource); err != nil {
		t.Fatal(err)
	}
	c.running = boot(t, cfg)
	return c
}

func (c *withFile) entry(id string) string {
	return fmt.Sprintf("  - {id: %s, kind: git, url: %q}\n", id, c.repository)
}

func (c *withFile) write(t *testing.T, entries string) {
	t.Helper()
	if err := os.WriteFile(c.file, []byte("sources:\n"+entries), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c *withFile) health() service.HealthCheck {
	c.t.Helper()
	h, err := c.Service.GetHealth(c.t.Context(), service.Operator(), service.None{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, check := range h.Checks {
		if check.Name == "Sources" {
			return check
		}
	}
	c.t.Fatal("no check of sources")
	return service.HealthCheck{}
}

func (c *withFile) origin(id string) (space.SyncOrigin, bool) {
	s, ok := c.syncs.Get(id)
	return s.Origin, ok
}

// The server applies the sources of its file at the start, and again when they are reloaded. A file
// with a mistake changes nothing, and the health of the server says so.
func TestTheSourcesOfTheFileAreFollowed(t *testing.T) {
	c := startConfigured(t)
	testenv.WaitFor(t, "the source is synced", func() bool {
		s, err := c.sources.Find("handbook")
		return err == nil && s.Files == 1
	})
	testenv.WaitFor(t, "the health is good", func() bool { return c.health().State == service.HealthGood })

	c.write(t, c.entry("handbook")+"  - {id: rules, kind: git, ulr: x}\n")
	c.ReloadSources()
	testenv.WaitFor(t, "the mistake is reported", func() bool {
		h := c.health()
		return h.State == service.HealthBad && strings.Contains(h.Detail, "did you mean url?") && h.Remedy != ""
	})
	if o, ok := c.origin("handbook"); !ok || o != space.OriginFile {
		t.Errorf("a bad file changes a source: %q, %v", o, ok)
	}

	c.write(t, c.entry("rules"))
	c.ReloadSources()
	testenv.WaitFor(t, "the file is applied", func() bool {
		left, _ := c.origin("handbook")
		_, added := c.origin("rules")
		return left == space.OriginLeft && added
	})
	testenv.WaitFor(t, "the health names the source that left", func() bool {
		h := c.health()
		return h.State == service.HealthNote && strings.Contains(h.Detail, "handbook")
	})
	_, _, text := get(t, "http://"+c.metrics.Addr().String()+"/metrics")
	for _, name := range []string{"satchel_sources_synced 2", "satchel_source_files ", `satchel_source_sync_seconds_count{state="ready"}`, "satchel_source_oldest_sync_seconds "} {
		if !strings.Contains(text, name) {
			t.Errorf("the metrics lack %s", name)
		}
	}
}

// A source ends when the person who added it is removed, and the health says what to do.
func TestASyncedSourceEndsWithThePersonWhoAddedIt(t *testing.T) {
	c := startConfigured(t)
	eve := addUser(t, c.Service, "eve", true)
	in := service.SyncedSourceInput{Source: space.Source{ID: "eves", Everybody: true}, Setting: syncs.Setting{Kind: "git", Settings: []byte(`{"url": "https://git.invalid/x.git"}`)}}
	if _, err := c.Service.AddSyncedSource(t.Context(), service.Person(eve), in); err != nil {
		t.Fatal(err)
	}
	removeUser(t, c.Service, "eve")
	testenv.WaitFor(t, "the source ends", func() bool {
		s, _ := c.syncs.Get("eves")
		_, err := c.sources.Find("eves")
		return s.State == space.SyncEnded && s.Next.IsZero() && fault.CodeOf(err) == fault.NotFound
	})
	if h := c.health(); h.State != service.HealthBad || !strings.Contains(h.Detail, "eves (ended)") {
		t.Errorf("%+v", h)
	}
	if _, err := c.Service.RemoveSyncedSource(t.Context(), service.Operator(), service.RemoveSyncedSourceInput{ID: "eves"}); err != nil {
		t.Errorf("remove: %v", err)
	}
}

// A private repository is read for the operator and for people who may read it at GitHub. Others
// are refused as if there were no such repository.
func TestPrivateRepositoriesAreReadForTheirReaders(t *testing.T) {
	c := connect(t)
	c.gh.AddPerson("mallory")
	ctx := t.Context()
	eve := addUser(t, c.Service, "eve", true)
	identity := store.Identity{User: eve.ID, Issuer: c.gh.URL, Subject: fmt.Sprint(c.gh.ID("mallory"))}
	if err := c.Accounts.LinkIdentity(ctx, store.Actor{Via: "test"}, identity); err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(c.gh.URL, "http://")
	preview := func(a service.Actor, repo string) (space.SyncPreview, error) {
		in := service.SyncedSourceInput{Source: space.Source{ID: "wiki"}, Setting: syncs.Setting{Kind: "github", Settings: fmt.Appendf(nil, `{"repo": %q, "host": %q}`, repo, host)}}
		return c.Service.PreviewSyncedSource(ctx, a, in)
	}
	ann := c.ann
	ann.Admin = true
	for name, a := range map[string]service.Actor{"the operator": service.Operator(), "ann, who is ada": service.Person(ann)} {
		if p, err := preview(a, "ada/notes"); err != nil || p.Files == 0 {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	_, private := preview(service.Person(eve), "ada/notes")
	_, absent := preview(service.Person(eve), "ada/absent")
	if fault.CodeOf(private) != fault.Forbidden || strings.ReplaceAll(fault.PublicOf(private), "notes", "absent") != fault.PublicOf(absent) {
		t.Errorf("attack: eve distinguishes %q from %q", fault.PublicOf(private), fault.PublicOf(absent))
	}

	in := service.SyncedSourceInput{Source: space.Source{ID: "wiki", Everybody: true}, Setting: syncs.Setting{Kind: "github", Settings: fmt.Appendf(nil, `{"repo": "ada/notes", "host": %q}`, host)}}
	if _, err := c.Service.AddSyncedSource(ctx, service.Person(eve), in); err != nil {
		t.Fatal(err)
	}
	x, err := c.Service.SyncSource(ctx, service.Operator(), service.SyncSourceInput{ID: "wiki"})
	if err != nil || x.Run == nil || x.Run.State != space.SyncRefused || x.Run.Problem == "" || x.Files != 0 {
		t.Errorf("a sync of eve's source: %+v, %v", x, err)
	}
	c.gh.SetPermission("ada/notes", "mallory", "read")
	x, err = c.Service.SyncSource(ctx, service.Operator(), service.SyncSourceInput{ID: "wiki"})
	if err != nil || x.Run.State != space.SyncReady || x.Files == 0 {
		t.Errorf("after GitHub lets eve read: %+v, %v", x.Run, err)
	}
}

// GitHub's push to a branch that a source follows starts a sync of the source.
func TestAPushAtGitHubStartsASync(t *testing.T) {
	c := connect(t)
	host := strings.TrimPrefix(c.gh.URL, "http://")
	in := service.SyncedSourceInput{Source: space.Source{ID: "wiki", Everybody: true}, Setting: syncs.Setting{Kind: "github", Settings: fmt.Appendf(nil, `{"repo": "ada/notes", "host": %q}`, host)}}
	if _, err := c.Service.AddSyncedSource(t.Context(), service.Operator(), in); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Service.SyncSource(t.Context(), service.Operator(), service.SyncSourceInput{ID: "wiki"}); err != nil {
		t.Fatal(err)
	}
	before, _ := c.syncs.Get("wiki")
	// The App of a server on loopback has no secret for webhooks.
	a, _, err := c.Accounts.GitHubApp(t.Context())
	if err == nil {
		err = c.Accounts.RemoveGitHubApp(t.Context(), c.ann.ID, "test")
	}
	if a.Secrets.Webhook = "secret"; err == nil {
		err = c.Accounts.SetGitHubApp(t.Context(), c.ann.ID, "test", a)
	}
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Appendf(nil, `{"ref": "refs/heads/main", "repository": {"id": %d, "full_name": "ada/notes", "default_branch": "main"}, "installation": {"id": 1}}`, c.notes)
	status, text, err := c.gh.Deliver(apptest.Delivery{ID: "one", Event: "push", URL: c.localURL() + app.PathWebhook, Body: body, Signature: apptest.Sign(a.Secrets.Webhook, body)})
	if err != nil || status != 202 {
		t.Fatalf("%d, %s, %v", status, text, err)
	}
	if after, _ := c.syncs.Get("wiki"); !after.Next.Before(before.Next) {
		t.Errorf("the next sync stays at %v", after.Next)
	}
}

// The files of the sources for everybody are pushed to one repository, with what changed and why.
// Other files of the repository stay.
func TestTheSnapshotRepositoryHasTheSources(t *testing.T) {
	c := startConfigured(t, func(cfg *config.Config, git *remotetest.Server) {
		git.Create("snapshot")
		git.Push("snapshot", "main", map[string]string{"README.md": "# Ours"})
		cfg.Snapshot = config.Snapshot{Repo: git.URL("snapshot"), Branch: "main", Token: "secret"}
	})
	c.write(t, c.entry("handbook")+strings.Replace(c.entry("restricted"), "}", ", audience: [ann]}", 1))
	c.ReloadSources()
	testenv.WaitFor(t, "both are synced", func() bool {
		s, err := c.sources.Find("restricted")
		return err == nil && s.Files == 1
	})
	has := func(path string) bool { return slices.Contains(c.git.Files("snapshot", "main"), path) }
	testenv.WaitFor(t, "the source is pushed", func() bool { return has("docs/handbook/a.md") && has("README.md") })
	if has("docs/restricted/a.md") {
		t.Error("attack: a source for ann is in the repository")
	}
	version := c.git.Push("docs", "main", map[string]string{"a.md": "# Changed", "b.md": "# New"})
	if _, err := c.Service.SyncSource(t.Context(), service.Operator(), service.SyncSourceInput{ID: "handbook"}); err != nil {
		t.Fatal(err)
	}
	testenv.WaitFor(t, "the change is pushed", func() bool { return has("docs/handbook/b.md") })
	head, err := c.Git.Head(t.Context(), service.SnapshotSpace)
	if err != nil {
		t.Fatal(err)
	}
	commit, err := c.Git.Show(t.Context(), service.SnapshotSpace, head)
	if err != nil || !strings.HasPrefix(commit.Message, "Sync handbook: 1 added, 1 changed") || !strings.Contains(commit.Message, version) || !strings.Contains(commit.Message, c.repository) {
		t.Errorf("%q, %v", commit.Message, err)
	}
}
