package service_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/gitstore/sources/syncs"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// Everybody makes sources of their own files, and changes only their own.
func TestPeopleUploadToTheirSources(t *testing.T) {
	w := servicetest.New(t, time.Now)
	ctx := t.Context()
	person := func(name string) service.Actor {
		t.Helper()
		u, _, err := w.Accounts.CreateUser(ctx, store.Actor{Via: "test"}, store.NewUser{Name: name, Space: space.NewSpaceID()})
		if err != nil {
			t.Fatal(err)
		}
		return service.Person(u)
	}
	eve, bob := person("eve"), person("bob")
	upload := func(a service.Actor, name, content string, create bool) (service.UploadedToSource, error) {
		in := service.UploadToSourceInput{ID: "manuals", Name: name, Stream: strings.NewReader(content)}
		if create {
			in.Create = &service.SyncedSourceInput{Source: space.Source{Everybody: true}}
		}
		return w.UploadToSource(ctx, a, in)
	}
	if _, err := upload(eve, "a.md", "# A", false); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("no source: %v", err)
	}
	if _, err := upload(eve, "a.png", "\x00", true); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("no text: %v", err)
	}
	if all, err := w.ListSources(ctx, service.Operator(), service.ListSourcesInput{}); err != nil || len(all) != 0 {
		t.Errorf("a refused upload made a source: %v, %v", all, err)
	}
	x, err := upload(eve, "a.md", "# A", true)
	if err != nil || x.Run.Added != 1 || x.Source.Files != 1 || x.State != space.SourceReady || x.Kind != "upload" {
		t.Fatalf("%+v, %v", x, err)
	}
	if s, err := w.OpenSource(ctx, bob, "manuals"); err != nil || s.Source.Files != 1 {
		t.Errorf("another person reads %+v, %v", s.Source, err)
	}
	for name, create := range map[string]bool{"adds": false, "adds with the name of the source": true} {
		if _, err := upload(bob, "b.md", "# B", create); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("attack: another person %s: %v", name, err)
		}
	}
	if _, err := w.RemoveFromSource(ctx, bob, service.RemoveFromSourceInput{ID: "manuals", Names: []string{"a.md"}}); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("attack: another person removes: %v", err)
	}
	if x, err := w.RemoveFromSource(ctx, eve, service.RemoveFromSourceInput{ID: "manuals", Names: []string{"a.md"}}); err != nil || x.Source.Files != 0 {
		t.Errorf("%+v, %v", x, err)
	}
}

// A person who sends many files at a time gets a clear refusal, and others are not affected.
func TestUploadsOfAPersonAtATime(t *testing.T) {
	w := servicetest.New(t, time.Now)
	ctx := testenv.Context(t)
	eve, _, err := w.Accounts.CreateUser(ctx, store.Actor{Via: "test"}, store.NewUser{Name: "eve", Space: space.NewSpaceID()})
	if err != nil {
		t.Fatal(err)
	}
	upload := func(u store.User, id string, r io.Reader) error {
		in := service.UploadToSourceInput{ID: id, Name: "a.md", Stream: r, Create: &service.SyncedSourceInput{Source: space.Source{Everybody: true}}}
		_, err := w.UploadToSource(ctx, service.Person(u), in)
		return err
	}
	var all sync.WaitGroup
	var open []*io.PipeWriter
	for i := range 3 {
		r, slow := io.Pipe()
		open = append(open, slow)
		all.Go(func() {
			if err := upload(eve, fmt.Sprintf("slow-%d", i), r); err != nil {
				t.Errorf("a slow upload: %v", err)
			}
		})
		if _, err := io.WriteString(slow, "# A"); err != nil { // it is read, so the upload has begun
			t.Fatal(err)
		}
	}
	if err := upload(eve, "more", strings.NewReader("# A")); fault.CodeOf(err) != fault.Limited {
		t.Errorf("one more: %v", err)
	}
	if err := upload(w.Owner, "others", strings.NewReader("# A")); err != nil {
		t.Errorf("another person: %v", err)
	}
	for _, slow := range open {
		slow.Close()
	}
	all.Wait()
	if err := upload(eve, "more", strings.NewReader("# A")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Only the operator adds directories, and never the server's own.
func TestOnlyTheOperatorAddsDirectories(t *testing.T) {
	w := servicetest.New(t, time.Now)
	ctx := t.Context()
	in := func(path string) service.SyncedSourceInput {
		return service.SyncedSourceInput{Source: space.Source{ID: "local", Everybody: true}, Setting: syncs.Setting{Kind: "directory", Settings: []byte(`{"path": "` + path + `"}`)}}
	}
	admin := w.Owner
	admin.Admin = true
	for name, a := range map[string]service.Actor{"an admin": service.Person(admin), "a person": service.Person(w.Owner)} {
		if _, err := w.AddSyncedSource(ctx, a, in(t.TempDir())); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("attack: %s: %v", name, err)
		}
	}
	for _, path := range []string{w.Options.SpacesDir, w.Dir, "/"} {
		if _, err := w.AddSyncedSource(ctx, service.Operator(), in(path)); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("attack: %s: %v", path, err)
		}
	}
	if _, err := w.AddSyncedSource(ctx, service.Operator(), in(t.TempDir())); err != nil {
		t.Error(err)
	}
}
