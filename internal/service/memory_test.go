package service_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/auth"
	"satchel/gitstore"
	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
)

func memoryDay() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

func memoryClient(w *servicetest.World, label string) service.Actor {
	return service.Client(auth.Principal{User: w.Owner.ID, Space: w.Space, Role: space.Owner, Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}}, "mcp").Labelled(label)
}

func remember(t *testing.T, w *servicetest.World, a service.Actor, all ...facts.Statement) service.Remembered {
	t.Helper()
	out, err := w.Remember(t.Context(), a, service.RememberInput{Space: service.SpaceRef{ID: w.Space}, Facts: all})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func contentOf(t *testing.T, w *servicetest.World, p space.Path) string {
	t.Helper()
	head, err := w.Git.Head(t.Context(), w.Space)
	if err != nil {
		t.Fatal(err)
	}
	e, err := w.Git.Lookup(t.Context(), w.Space, head, p)
	if fault.CodeOf(err) == fault.NotFound {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := w.Git.ReadBlob(t.Context(), w.Space, e.Blob)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRemember(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	a := memoryClient(w, "claude-code/2.1")
	r := remember(t, w, a,
		facts.Statement{Type: "preference", Key: "seat", Value: "Prefers window seats", Explicit: true},
		facts.Statement{Type: "person", Key: "Maria", Value: "Owns deployments", Confidence: sureOf(.8), Expires: "2027-01-31"})
	if r.Commit == "" || r.Facts[0].Outcome != facts.Added || r.Facts[1].Outcome != facts.Added {
		t.Errorf("%+v", r)
	}
	const maria = "---\nvalue: Owns deployments\nconfidence: 0.8\nsource: inferred\nclient: claude-code/2.1\ntool: remember\nfirst_seen: 2026-11-20\nlast_confirmed: 2026-11-20\nexpires: 2027-01-31\n---\n"
	if got := contentOf(t, w, "memory/person/maria.md"); got != maria {
		t.Errorf("%s", got)
	}
	log, err := w.Git.Log(t.Context(), w.Space, space.LogQuery{Limit: 1})
	if err != nil || log[0].Message != "Remember preference/seat, person/maria" || log[0].Tool != "remember" || log[0].Client != "claude-code/2.1" {
		t.Errorf("%+v, %v", log, err)
	}

	// What the user said stays, and the answer says how to override it.
	r = remember(t, w, a, facts.Statement{Type: "preference", Key: "seat", Value: "Prefers the aisle"})
	if f := r.Facts[0]; r.Commit != "" || f.Outcome != facts.Kept || !strings.Contains(f.Why, `"Prefers window seats" on 2026-11-20`) || !strings.Contains(f.Why, "explicit") {
		t.Errorf("%+v", r)
	}
	r = remember(t, w, a, facts.Statement{Type: "preference", Key: "seat", Value: "Prefers the aisle", Explicit: true})
	if f := r.Facts[0]; f.Outcome != facts.Replaced || f.Before.Value != "Prefers window seats" {
		t.Errorf("%+v", r)
	}

	// A fact that repeats or contradicts another is saved, and the other is named.
	r = remember(t, w, a, facts.Statement{Type: "project", Key: "maria", Value: "A rewrite in Go"}, facts.Statement{Type: "fact", Key: "flights", Value: "prefers: the Aisle!"})
	if a, b := r.Facts[0].Alike, r.Facts[1].Alike; len(a) != 1 || a[0].Name() != "person/maria" || len(b) != 1 || b[0].Name() != "preference/seat" {
		t.Errorf("%+v", r)
	}
}

func sureOf(f float64) *float64 { return &f }

// TestRememberAVersion checks that a statement based on a version changes no other version.
func TestRememberAVersion(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	a := memoryClient(w, "claude-code/2.1")
	say := func(value, base string) service.RememberedFact {
		t.Helper()
		return remember(t, w, a, facts.Statement{Type: "person", Key: "ann", Value: value, Explicit: true, Base: base}).Facts[0]
	}
	if r := say("Leads", facts.NoFact); r.Outcome != facts.Added {
		t.Fatalf("a new fact: %+v", r)
	}
	first := string(remember(t, w, a, facts.Statement{Type: "person", Key: "ann", Value: "Leads"}).Facts[0].Before.Etag)
	if r := say("Leads sales", first); r.Outcome != facts.Replaced {
		t.Fatalf("the newest version: %+v", r)
	}
	for name, base := range map[string]string{"an older version": first, "no version": facts.NoFact, "attack: not an etag": "../x"} {
		if r := say("Left", base); r.Outcome != facts.Stale || r.Why == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	_, err := w.Forget(t.Context(), a, service.ForgetInput{Space: service.SpaceRef{ID: w.Space}, Keys: []string{"person/ann"}, Base: space.BlobID(first)})
	if fault.CodeOf(err) != fault.Conflict {
		t.Errorf("forget an older version: %v", err)
	}
	if got := contentOf(t, w, "memory/person/ann.md"); !strings.Contains(got, "value: Leads sales\n") {
		t.Errorf("the file holds %q", got)
	}
}

func TestRememberOneFactUnderTwoSpellings(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	a := memoryClient(w, "browser")
	remember(t, w, a, facts.Statement{Type: "preference", Key: "tea", Value: "green"})
	etag := string(remember(t, w, a, facts.Statement{Type: "preference", Key: "tea", Value: "green"}).Facts[0].Before.Etag)
	_, err := w.Remember(t.Context(), a, service.RememberInput{Space: service.SpaceRef{ID: w.Space}, Facts: []facts.Statement{
		{Type: "preference", Key: "Tea", Value: "black", Base: etag, Explicit: true}, {Type: "preference", Key: "tea", Value: "white", Explicit: true},
	}})
	if got := contentOf(t, w, "memory/preference/tea.md"); fault.CodeOf(err) != fault.Invalid || !strings.Contains(got, "green") {
		t.Errorf("%v, %s", err, got)
	}
}

// TestRememberAFileWithAnyName checks that a fact can be corrected in a file that a person named.
func TestRememberAFileWithAnyName(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	w.Write(map[string]string{"memory/people/O'Brien (Ann).md": "---\nvalue: Leads\n---\n"})
	a := memoryClient(w, "browser")
	st := facts.Statement{Type: "people", Key: "O'Brien (Ann)", Value: "Left", Explicit: true, Base: "0"}
	r := remember(t, w, a, st).Facts[0]
	if r.Outcome != facts.Stale {
		t.Fatalf("%+v", r)
	}
	st.Base = string(r.Before.Etag)
	if r := remember(t, w, a, st).Facts[0]; r.Outcome != facts.Replaced || r.Path != "memory/people/O'Brien (Ann).md" {
		t.Errorf("%+v", r)
	}
}

// Two statements about the same fact in one call are a mistake.
func TestRememberTwiceInOneCall(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	_, err := w.Remember(t.Context(), memoryClient(w, "x"), service.RememberInput{Space: service.SpaceRef{ID: w.Space}, Facts: []facts.Statement{{Type: "a", Key: "b", Value: "one"}, {Type: "A", Key: "b", Value: "two"}}})
	if fault.CodeOf(err) != fault.Invalid || contentOf(t, w, "memory/a/b.md") != "" {
		t.Errorf("%v", err)
	}
}

// A name that a person wrote differently is the same fact, so an inference does not get
// around what the person said.
func TestRememberAFactOfAnotherSpelling(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	w.Write(map[string]string{"memory/Pref/Window Seat.md": "---\nvalue: said\n---\n", "memory/pref/cafe\u0301.md": "---\nvalue: said\n---\n"})
	r := remember(t, w, memoryClient(w, "x"), facts.Statement{Type: "Pref", Key: "window seat", Value: "inferred"}, facts.Statement{Type: "pref", Key: "caf\u00e9", Value: "inferred"})
	for _, f := range r.Facts {
		if f.Outcome != facts.Kept {
			t.Errorf("%+v", f)
		}
	}
	r = remember(t, w, memoryClient(w, "x"), facts.Statement{Type: "pref", Key: "window-seat", Value: "corrected", Explicit: true})
	if f := facts.Read([]byte(contentOf(t, w, "memory/Pref/Window Seat.md"))); r.Facts[0].Outcome != facts.Replaced || f.Value != "corrected" {
		t.Errorf("%+v, %+v", r, f)
	}
}

func TestRememberRefuses(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	w.Write(map[string]string{"memory/bad/note.md": "no front matter\n", "memory/file": "x\n", "memory/dir/sub.md/a.md": "x\n"})
	a := memoryClient(w, "x")
	for _, name := range []string{"bad/note", "file/key", "dir/sub"} {
		kind, key, _ := strings.Cut(name, "/")
		r := remember(t, w, a, facts.Statement{Type: kind, Key: key, Value: "v", Explicit: true}, facts.Statement{Type: "good", Key: key, Value: "v " + key})
		if r.Facts[0].Outcome != facts.Invalid || r.Facts[0].Why == "" || r.Facts[1].Outcome != facts.Added {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if got := contentOf(t, w, "memory/bad/note.md"); got != "no front matter\n" {
		t.Errorf("%q", got)
	}
	_, err := w.Remember(t.Context(), a, service.RememberInput{Space: service.SpaceRef{ID: w.Space}, Facts: []facts.Statement{{Type: "a", Key: "b", Value: "fine"}, {Type: "a", Key: "/", Value: ""}}})
	if text := fault.PublicOf(err); fault.CodeOf(err) != fault.Invalid || strings.Count(text, "facts[1]") != 2 || contentOf(t, w, "memory/a/b.md") != "" {
		t.Errorf("%v", err)
	}
}

// screened returns a World with an empty space that refuses the password hunter2.
func screened(t *testing.T) *servicetest.World {
	t.Helper()
	w := servicetest.Empty(t, memoryDay, servicetest.Setup{Git: func(o *gitstore.Options) {
		o.Screen = func(_ context.Context, _ space.SpaceID, _ space.Path, content []byte, _ func() ([]byte, error)) error {
			if strings.Contains(string(content), "hunter2") {
				return fault.New(fault.Invalid, "It looks like a password.")
			}
			return nil
		}
	}})
	w.Space = space.NewSpaceID()
	if _, err := w.Git.Create(t.Context(), w.Space, space.ChangeSet{}, space.Meta{}); err != nil {
		t.Fatal(err)
	}
	return w
}

// A fact that looks like a secret is refused, and the others are saved.
func TestRememberASecret(t *testing.T) {
	w := screened(t)
	r := remember(t, w, memoryClient(w, "x"), facts.Statement{Type: "a", Key: "login", Value: "The password is hunter2"}, facts.Statement{Type: "a", Key: "tea", Value: "Drinks tea"})
	if a, b := r.Facts[0], r.Facts[1]; a.Outcome != facts.Refused || a.Why != "It looks like a password." || b.Outcome != facts.Added || r.Commit == "" {
		t.Errorf("%+v", r)
	}
	if contentOf(t, w, "memory/a/login.md") != "" {
		t.Error("the secret is stored")
	}
}

// Clients that save at the same time lose nothing: facts of different keys are all there,
// and what the user said survives inferences.
func TestRememberAtOnce(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	var wg sync.WaitGroup
	for client := range 4 {
		a := memoryClient(w, fmt.Sprint("client-", client))
		wg.Go(func() {
			for i := range 10 {
				all := []facts.Statement{
					{Type: fmt.Sprint("c", client), Key: fmt.Sprint("k", i), Value: fmt.Sprint("value ", client, i)},
					{Type: "shared", Key: fmt.Sprint("k", i), Value: fmt.Sprint("by ", client), Explicit: client == 2},
				}
				if _, err := w.Remember(t.Context(), a, service.RememberInput{Space: service.SpaceRef{ID: w.Space}, Facts: all}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 10 {
		for client := range 4 {
			if got := contentOf(t, w, space.Path(fmt.Sprintf("memory/c%d/k%d.md", client, i))); got == "" {
				t.Errorf("fact %d of client %d is lost", i, client)
			}
		}
		if f := facts.Read([]byte(contentOf(t, w, space.Path(fmt.Sprintf("memory/shared/k%d.md", i))))); f.Value != "by 2" || f.Source != facts.Explicit {
			t.Errorf("the user's statement is lost: %+v", f)
		}
	}
}

// The list has expired facts, and the files that are not facts with their problems.
func TestListFacts(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	w.Write(map[string]string{
		"memory/tea.md": "not a fact\n", "memory/.gitkeep": "", "memory/a/b/c.md": "---\nvalue: too deep\n---\n", "memory/a/bad.md": "---\n[\n---\n",
		"memory/a/old.md": "---\nvalue: old\nexpires: 2026-11-19\n---\n", "memory/a/sure.md": "---\nvalue: sure\nsource: inferred\nconfidence: 0.5\nlast_confirmed: 9999-12-31\n---\n",
		"memory/a/sure.conflict-3fe1f0ad51.md": "---\nvalue: other\n---\n", "knowledge/x.md": "x\n",
	})
	list, err := w.ListFacts(t.Context(), memoryClient(w, "x"), service.ListFactsInput{Space: service.SpaceRef{ID: w.Space}})
	var got []string
	for _, f := range list.Facts {
		got = append(got, fmt.Sprintf("%s %v %v", f.Path, f.Problem == "", f.Expired))
	}
	want := []string{"memory/a/b/c.md false false", "memory/a/bad.md false false", "memory/a/old.md true true", "memory/a/sure.conflict-3fe1f0ad51.md false false", "memory/a/sure.md true false", "memory/tea.md false false"}
	if err != nil || !slices.Equal(got, want) || *list.Facts[4].Confidence != .5 || list.Facts[4].Name() != "a/sure" || list.Facts[4].Confirmed != "" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestForget(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	w.Write(map[string]string{"memory/tea.md": "not a fact\n", "memory/a/tea.md": "---\nvalue: Drinks tea\n---\n", "memory/a/milk.md": "---\nvalue: No milk in tea\n---\n", "memory/b/c.md": "---\nvalue: other\n---\n", "memory/file.txt": "x", "memory/b/long.md": "---\nvalue: " + strings.Repeat("filler ", 400) + "uniquetail\n---\n", "memory/b/zh.md": "---\nvalue: 我喜欢喝茶\n---\n"})
	a := memoryClient(w, "x")
	forget := func(in service.ForgetInput) (service.Forgotten, []string) {
		t.Helper()
		in.Space, in.Paths = service.SpaceRef{ID: w.Space}, true
		out, err := w.Forget(t.Context(), a, in)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range out.Removed {
			names = append(names, f.Name())
		}
		return out, names
	}
	if out, names := forget(service.ForgetInput{Keys: []string{"A/tea", "memory/tea.md", "no/thing"}}); !slices.Equal(names, []string{"a/tea", "memory/tea.md"}) || !slices.Equal(out.Missing, []string{"no/thing"}) || out.Commit == "" {
		t.Errorf("%+v", out)
	}
	if out, err := w.Forget(t.Context(), a, service.ForgetInput{Space: service.SpaceRef{ID: w.Space}, Keys: []string{"memory/file.txt"}}); err != nil || len(out.Removed) > 0 {
		t.Errorf("a path that nobody may name: %+v, %v", out, err)
	}
	for q, n := range map[string]int{"uniquetail": 1, "喝茶": 1, "喝酒": 0} {
		if out, names := forget(service.ForgetInput{Query: q}); len(names) != n {
			t.Errorf("%s: %+v", q, out)
		}
	}
	if out, _ := forget(service.ForgetInput{Query: "te"}); len(out.Removed) > 0 {
		t.Errorf("a part of a word removed %+v", out)
	}
	if out, names := forget(service.ForgetInput{Query: "TEA milk"}); !slices.Equal(names, []string{"a/milk"}) || out.Removed[0].Value != "No milk in tea" {
		t.Errorf("%+v", out)
	}
	if out, _ := forget(service.ForgetInput{Query: "tea"}); out.Commit != "" || len(out.Removed) > 0 {
		t.Errorf("%+v", out)
	}
	if contentOf(t, w, "memory/a/milk.md") != "" || contentOf(t, w, "memory/b/c.md") == "" {
		t.Error("the wrong facts are gone")
	}
	for _, in := range []service.ForgetInput{{}, {Keys: []string{"a/b"}, Query: "x"}, {Query: " "}} {
		in.Space = service.SpaceRef{ID: w.Space}
		if _, err := w.Forget(t.Context(), a, in); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", in, err)
		}
	}
}

// Names are found as Remember writes them, and a fact with exactly the name comes first.
func TestForgetByAName(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	const doc = "---\nvalue: x\n---\n"
	w.Write(map[string]string{"memory/person/Maria.md": doc, "memory/person/maria.md": doc, "memory/a/window-seat.md": doc, "memory/a/Tea.md": doc})
	out, err := w.Forget(t.Context(), memoryClient(w, "x"), service.ForgetInput{Space: service.SpaceRef{ID: w.Space}, Keys: []string{"person/maria", "A/Window seat", "a/tea", "../a/tea"}})
	var got []string
	for _, f := range out.Removed {
		got = append(got, string(f.Path))
	}
	if want := []string{"memory/a/Tea.md", "memory/a/window-seat.md", "memory/person/maria.md"}; err != nil || !slices.Equal(got, want) || len(out.Missing) != 1 {
		t.Errorf("%q, missing %q, %v", got, out.Missing, err)
	}
}

// A file in the place of the directory of facts is named.
func TestRememberWithoutADirectory(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	w.Write(map[string]string{"memory": "a file\n"})
	r := remember(t, w, memoryClient(w, "x"), facts.Statement{Type: "a", Key: "b", Value: "c"})
	if f := r.Facts[0]; f.Outcome != facts.Invalid || !strings.Contains(f.Why, "memory is a file") {
		t.Errorf("%+v", r)
	}
}

// Attack: a query that matches nearly everything removes nothing.
func TestForgetAQueryForMuch(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	files := map[string]string{}
	for i := range 21 {
		files[fmt.Sprintf("memory/a/k%d.md", i)] = "---\nvalue: the same word\n---\n"
	}
	w.Write(files)
	_, err := w.Forget(t.Context(), memoryClient(w, "x"), service.ForgetInput{Space: service.SpaceRef{ID: w.Space}, Query: "word"})
	if fault.CodeOf(err) != fault.Invalid || contentOf(t, w, "memory/a/k0.md") == "" {
		t.Error(err)
	}
}

// A person can confirm a fact that is longer than a new fact may be, but not make it longer.
func TestALongFactCanBeConfirmed(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	long := strings.Repeat("long ", 2000)
	const path = "memory/note/long.md"
	_, err := w.WriteFiles(t.Context(), service.Operator(), service.WriteFilesInput{Space: service.SpaceRef{ID: w.Space}, Changes: []space.Change{{Path: path, Content: []byte("---\nvalue: " + long + "\n---\n")}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		value string
		want  facts.Outcome
	}{{long + "er", facts.Refused}, {long, facts.Confirmed}} {
		e, err := w.Git.Lookup(t.Context(), w.Space, headOf(t, w), path)
		if err != nil {
			t.Fatal(err)
		}
		out, err := w.Remember(t.Context(), service.Operator(), service.RememberInput{Space: service.SpaceRef{ID: w.Space}, Facts: []facts.Statement{{Type: "note", Key: "long", Value: tt.value, Explicit: true, Base: string(e.Blob)}}})
		if err != nil || out.Facts[0].Outcome != tt.want {
			t.Errorf("%v, %v", out, err)
		}
	}
}
