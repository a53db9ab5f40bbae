package web_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/pending"
	"satchel/web"
)

// hold keeps a file of a person that could not be committed.
func (w *world) hold(u space.UserID, id space.SpaceID, files ...pending.File) {
	w.t.Helper()
	left, err := w.service.Pending.Save(w.t.Context(), u, id, files, nil)
	must(w.t, err)
	if len(left) > 0 {
		w.t.Fatalf("not held: %+v", left)
	}
}

// heldFiles lists a person's files in ada's space that could not be committed.
func (w *world) heldFiles(u space.UserID) (paths []string) {
	w.t.Helper()
	list, err := w.service.Pending.List(w.t.Context(), u, w.space.ID)
	must(w.t, err)
	for _, f := range list {
		paths = append(paths, f.Path)
	}
	return paths
}

// breakPending makes the pending files of a person unreadable, until repair is called.
func (w *world) breakPending(u space.UserID) (repair func()) {
	w.t.Helper()
	dir := filepath.Join(w.service.Dir, "held", string(u))
	must(w.t, os.RemoveAll(dir+".aside"))
	if err := os.Rename(dir, dir+".aside"); err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	must(w.t, os.WriteFile(dir, []byte("canary of a disk"), 0o600))
	return func() {
		must(w.t, os.Remove(dir))
		if err := os.Rename(dir+".aside", dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.t.Fatal(err)
		}
	}
}

// awsKey looks like a secret.
const awsKey = "AKIA" + "Z7QPL3MNRT5VXW2B"

func secretFile(path string) pending.File {
	return pending.File{Path: path, Content: []byte("a\nb\n" + awsKey + "\n"), Why: "Line 3 looks like a secret.", Code: fault.Forbidden}
}

// newHolding returns a world in which ada's space is pushed, but one of her files could
// not be committed. print is the fingerprint of what looks like a secret in it.
func newHolding(t *testing.T) (a *active, print string) {
	t.Helper()
	a = newActive(t, web.LiveOptions{})
	a.connect(a.space.ID, "https://git.test/x.git")
	a.hold(a.ada.ID, a.space.ID, secretFile("notes/keys.md"))
	found := a.service.Secrets.Scan("", []byte(awsKey))
	if len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	return a, found[0].Fingerprint
}

var heldKey = regexp.MustCompile(`name="file" value="([0-9a-f]{32})"`)

func keyIn(t *testing.T, body string) string {
	t.Helper()
	m := heldKey.FindStringSubmatch(body)
	if m == nil {
		t.Fatal("no held file is on the page")
	}
	return m[1]
}

// TestWhatIsNotSavedIsSaid checks that pages say that everything is pushed exactly if no
// file of the visitor is pending.
func TestWhatIsNotSavedIsSaid(t *testing.T) {
	a, _ := newHolding(t)
	b := a.as(a.ada)
	_, secret, err := a.CreateKey(t.Context(), cli, store.NewKey{User: a.ada.ID, Space: a.space.ID, Scopes: []space.Scope{space.ScopeRead}, Name: "Claude Code"})
	must(t, err)
	_, err = a.Verify(t.Context(), secret.Reveal()) // the first page is an overview from then on
	must(t, err)
	pages := map[string]string{"activity": a.in("activity"), "remote": a.in("remote"), "home": "/"}
	for name, target := range pages {
		res := b.get(target)
		want(t, name, res, http.StatusOK)
		checkPage(t, name, res)
		if strings.Contains(res.body, "Everything is pushed") || !strings.Contains(res.body, "Everything that is saved is pushed") {
			t.Errorf("%s says that everything is pushed", name)
		}
	}
	if body := b.get(pages["activity"]).body; !strings.Contains(body, "1 file is not saved") || !strings.Contains(body, "/remote#held") {
		t.Error("Activity does not count it")
	}
	body := b.get(pages["remote"]).body
	for _, s := range []string{"Not saved: 1 file", "notes/keys.md", "line 3: ", "Allow: this is not a secret", "/held/discard"} {
		if !strings.Contains(body, s) {
			t.Errorf("the page lacks %q", s)
		}
	}
	repair := a.breakPending(a.ada.ID)
	if body := b.get(pages["activity"]).body; strings.Contains(body, "Everything is pushed") || !strings.Contains(body, "cannot check now whether") || strings.Contains(body, "canary") {
		t.Error("what cannot be read counts as nothing")
	}
	want(t, "what cannot be read", b.get(pages["remote"]), http.StatusOK)
	repair()
	_, err = a.service.Pending.Drop(t.Context(), a.ada.ID, a.space.ID, "notes")
	must(t, err)
	for name, target := range pages {
		if body := b.get(target).body; !strings.Contains(body, "Everything is pushed") || strings.Contains(body, "Not saved: ") || strings.Contains(body, "file is not saved") {
			t.Errorf("%s does not say that everything is pushed", name)
		}
	}
}

func TestAHeldFileIsAllowedOrDiscarded(t *testing.T) {
	a, print := newHolding(t)
	b := a.as(a.ada)
	key := keyIn(t, b.get(a.in("remote")).body)
	res := b.send(a.in("held/allow"), url.Values{"file": {key}, "secrets": {print}})
	want(t, "allow", res, http.StatusSeeOther)
	if body := b.get(strings.TrimSuffix(strings.TrimPrefix(res.location(), issuer), "#held")).body; !strings.Contains(body, "The file is allowed") || strings.Contains(body, "Allow: this is") || strings.Contains(body, "Everything is pushed") {
		t.Error("the page does not say what became of it")
	}
	res = b.send(a.in("held/discard"), url.Values{"file": {key}})
	want(t, "discard", res, http.StatusSeeOther)
	if body := b.get(strings.TrimSuffix(strings.TrimPrefix(res.location(), issuer), "#held")).body; !strings.Contains(body, "Discarded.") || strings.Contains(body, "keys.md") || !strings.Contains(body, "Everything is pushed") {
		t.Error("the page does not say that it is gone")
	}
	if allowed, err := a.service.Secrets.List(t.Context(), a.space.ID); err != nil || len(allowed) != 1 || allowed[0].Fingerprint != print || len(a.heldFiles(a.ada.ID)) > 0 {
		t.Errorf("allowed: %+v, %v; held: %v", allowed, err, a.heldFiles(a.ada.ID))
	}
	want(t, "discard again", b.send(a.in("held/discard"), url.Values{"file": {key}}), http.StatusNotFound)
	want(t, "nothing by a GET", b.get(a.in("held/discard")), http.StatusNotFound)
}

// TestAttackOnHeldFiles checks that only their owner reaches pending files.
func TestAttackOnHeldFiles(t *testing.T) {
	a, print := newHolding(t)
	key := keyIn(t, a.as(a.ada).get(a.in("remote")).body)
	form := url.Values{"file": {key}, "secrets": {print}}
	a.hold(a.bob.ID, a.space.ID, secretFile("bobs.md"))
	for name, b := range map[string]*browser{"an editor": a.as(a.carol), "a reader": a.as(a.bob), "a stranger": a.as(a.eve), "nobody": a.browser()} {
		for _, target := range []string{"activity", "remote", "github"} {
			if body := b.get(a.in("%s", target)).body; strings.Contains(body, "keys.md") || strings.Contains(body, key) {
				t.Errorf("%s sees another's held file on %s", name, target)
			}
		}
		for _, act := range []string{"allow", "discard"} {
			if res := b.send(a.in("held/%s", act), form); res.StatusCode < 400 {
				t.Errorf("%s may %s another's: %d", name, act, res.StatusCode)
			}
		}
	}
	bob := a.as(a.bob)
	own := keyIn(t, bob.get(a.in("remote")).body)
	if strings.Contains(bob.get(a.in("remote")).body, "Allow: this is") {
		t.Error("a reader is offered to allow a secret")
	}
	want(t, "a reader allows", bob.send(a.in("held/allow"), url.Values{"file": {own}, "secrets": {print}}), http.StatusForbidden)
	ada := a.as(a.ada)
	for name, c := range map[string]struct {
		target string
		form   url.Values
	}{
		"in another space":       {"/spaces/" + string(a.evil.ID) + "/held/discard", form},
		"by its path":            {a.in("held/discard"), url.Values{"file": {"notes/keys.md"}}},
		"all of them":            {a.in("held/discard"), url.Values{"file": {""}}},
		"a reader's, by its key": {a.in("held/allow"), url.Values{"file": {own}, "secrets": {print}}},
	} {
		want(t, name, ada.send(c.target, c.form), http.StatusNotFound)
	}
	allowed, err := a.service.Secrets.List(t.Context(), a.space.ID)
	must(t, err)
	if len(allowed) > 0 || len(a.heldFiles(a.ada.ID)) != 1 || len(a.heldFiles(a.bob.ID)) != 1 {
		t.Errorf("attacks allowed %+v, or discarded a file", allowed)
	}
}

// TestAttackByTheNameOfAHeldFile checks that no page contains the raw path, which a
// sandbox chooses and which may have any bytes and length.
func TestAttackByTheNameOfAHeldFile(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	a.connect(a.space.ID, "https://git.test/x.git")
	script := `"><script>alert(1)</script><img src=x onerror=alert(1)>`
	for _, p := range []string{script, "\xff\xfe\n.md", "../../etc/passwd", strings.Repeat("a/", 2000) + "x", "\u202egnp.exe"} {
		f := secretFile(p + "=" + awsKey)
		f.Why = script
		a.hold(a.ada.ID, a.space.ID, f)
	}
	for i := range 200 {
		a.hold(a.ada.ID, a.space.ID, pending.File{Path: fmt.Sprint("f", i)})
	}
	b := a.as(a.ada)
	for _, target := range []string{"remote", "activity"} {
		res := b.get(a.in("%s", target))
		want(t, target, res, http.StatusOK)
		checkPage(t, target, res)
		if strings.Contains(res.body, "<script>alert") || strings.Contains(res.body, "<img src=x") || strings.Contains(res.body, awsKey) {
			t.Errorf("%s shows what it must not", target)
		}
		if len(res.body) > 100<<10 {
			t.Errorf("%s has %d bytes", target, len(res.body))
		}
	}
	body := b.get(a.in("remote")).body
	if !strings.Contains(body, "Not saved: 205 files") || !strings.Contains(body, "And 185 more") {
		t.Error("the rest is not counted")
	}
	want(t, "discard by key", b.send(a.in("held/discard"), url.Values{"file": {keyIn(t, body)}}), http.StatusSeeOther)
	if n := len(a.heldFiles(a.ada.ID)); n != 204 {
		t.Errorf("%d are left", n)
	}
}
