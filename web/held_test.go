package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// fakeHeld holds pending files for people in spaces.
type fakeHeld struct {
	web.Operations
	files map[string][]space.PendingFile // by user and space
	err   error
	asked []string // what was allowed and discarded
}

func heldAt(u space.UserID, id space.SpaceID) string { return string(u) + "/" + string(id) }

func (f *fakeHeld) ListPendingFiles(_ context.Context, a service.Actor, in service.ListPendingFilesInput) ([]space.PendingFile, error) {
	return f.files[heldAt(a.User(), in.Space.ID)], f.err
}

func (f *fakeHeld) find(u space.UserID, id space.SpaceID, path string) int {
	return slices.IndexFunc(f.files[heldAt(u, id)], func(h space.PendingFile) bool { return h.Path == path })
}

func (f *fakeHeld) AllowPendingSecrets(_ context.Context, a service.Actor, in service.AllowPendingSecretsInput) (service.None, error) {
	f.asked = append(f.asked, fmt.Sprint("allow ", in.Path, " ", in.Fingerprints))
	i := f.find(a.User(), in.Space.ID, in.Path)
	if i < 0 {
		return service.None{}, fault.New(fault.NotFound, "No such file is held.")
	}
	h := &f.files[heldAt(a.User(), in.Space.ID)][i]
	h.Secrets, h.Allowed = nil, true
	return service.None{}, nil
}

func (f *fakeHeld) DiscardPendingFile(_ context.Context, a service.Actor, in service.DiscardPendingFileInput) (int, error) {
	f.asked = append(f.asked, "discard "+in.Path)
	i := f.find(a.User(), in.Space.ID, in.Path)
	if i < 0 {
		return 0, fault.New(fault.NotFound, "No such file is held.")
	}
	k := heldAt(a.User(), in.Space.ID)
	f.files[k] = slices.Delete(f.files[k], i, i+1)
	return 1, nil
}

const canaryPrint = "0123456789abcdef0123"

// newHolding returns a world in which ada's space is pushed, but one of her files could
// not be committed.
func newHolding(t *testing.T) (*active, *fakeHeld) {
	t.Helper()
	h := &fakeHeld{files: map[string][]space.PendingFile{}}
	a := newActive(t, web.LiveOptions{}, func(o *web.Options) {
		h.Operations, o.Operations = o.Operations, h
	})
	a.remotes.status = statusAt(space.RemotePushed, "https://git.test/x.git")
	h.files[heldAt(a.ada.ID, a.space.ID)] = []space.PendingFile{{
		Path: "notes/keys.md", Shown: "notes/keys.md", Size: 120, Since: a.clock(), Why: "Line 3 looks like a secret.",
		Secrets: []space.PendingSecret{{Line: 3, Description: "AWS access key", Fingerprint: canaryPrint}},
	}}
	return a, h
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
	a, h := newHolding(t)
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
	for _, s := range []string{"Not saved: 1 file", "notes/keys.md", "line 3: AWS access key", "Allow: it is no secret", "Yes, discard it"} {
		if !strings.Contains(body, s) {
			t.Errorf("the page lacks %q", s)
		}
	}
	h.err = errors.New("canary of a disk")
	if body := b.get(pages["activity"]).body; strings.Contains(body, "Everything is pushed") || !strings.Contains(body, "cannot be told now") || strings.Contains(body, "canary") {
		t.Error("what cannot be read counts as nothing")
	}
	want(t, "what cannot be read", b.get(pages["remote"]), http.StatusOK)
	h.err = nil
	h.files = map[string][]space.PendingFile{}
	for name, target := range pages {
		if body := b.get(target).body; !strings.Contains(body, "Everything is pushed") || strings.Contains(body, "Not saved: ") || strings.Contains(body, "file is not saved") {
			t.Errorf("%s does not say that everything is pushed", name)
		}
	}
}

func TestAHeldFileIsAllowedOrDiscarded(t *testing.T) {
	a, h := newHolding(t)
	b := a.as(a.ada)
	key := keyIn(t, b.get(a.in("remote")).body)
	res := b.send(a.in("held/allow"), url.Values{"file": {key}, "secrets": {canaryPrint}})
	want(t, "allow", res, http.StatusSeeOther)
	if body := b.get(strings.TrimSuffix(strings.TrimPrefix(res.location(), issuer), "#held")).body; !strings.Contains(body, "It is allowed") || strings.Contains(body, "Allow: it is") || strings.Contains(body, "Everything is pushed") {
		t.Error("the page does not say what became of it")
	}
	res = b.send(a.in("held/discard"), url.Values{"file": {key}})
	want(t, "discard", res, http.StatusSeeOther)
	if body := b.get(strings.TrimSuffix(strings.TrimPrefix(res.location(), issuer), "#held")).body; !strings.Contains(body, "Discarded.") || strings.Contains(body, "keys.md") || !strings.Contains(body, "Everything is pushed") {
		t.Error("the page does not say that it is gone")
	}
	if got := strings.Join(h.asked, "; "); got != "allow notes/keys.md ["+canaryPrint+"]; discard notes/keys.md" {
		t.Error(got)
	}
	want(t, "discard again", b.send(a.in("held/discard"), url.Values{"file": {key}}), http.StatusNotFound)
	want(t, "nothing by a GET", b.get(a.in("held/discard")), http.StatusNotFound)
}

// TestAttackOnHeldFiles checks that only their owner reaches pending files.
func TestAttackOnHeldFiles(t *testing.T) {
	a, h := newHolding(t)
	key := keyIn(t, a.as(a.ada).get(a.in("remote")).body)
	form := url.Values{"file": {key}, "secrets": {canaryPrint}}
	mine := h.files[heldAt(a.ada.ID, a.space.ID)][0]
	h.files[heldAt(a.bob.ID, a.space.ID)] = []space.PendingFile{{Path: "bobs.md", Shown: "bobs.md", Secrets: mine.Secrets}}
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
	if strings.Contains(bob.get(a.in("remote")).body, "Allow: it is") {
		t.Error("a reader is offered to allow a secret")
	}
	want(t, "a reader allows", bob.send(a.in("held/allow"), url.Values{"file": {own}, "secrets": {canaryPrint}}), http.StatusForbidden)
	ada := a.as(a.ada)
	for name, c := range map[string]struct {
		target string
		form   url.Values
	}{
		"in another space":       {"/spaces/" + string(a.evil.ID) + "/held/discard", form},
		"by its path":            {a.in("held/discard"), url.Values{"file": {"notes/keys.md"}}},
		"all of them":            {a.in("held/discard"), url.Values{"file": {""}}},
		"a reader's, by its key": {a.in("held/allow"), url.Values{"file": {own}, "secrets": {canaryPrint}}},
	} {
		want(t, name, ada.send(c.target, c.form), http.StatusNotFound)
	}
	for name, change := range map[string]func(*http.Request){
		"from another site": func(r *http.Request) {
			r.Header.Set("Origin", "https://evil.test")
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		},
		"from a sandboxed one": func(r *http.Request) { r.Header.Set("Origin", "null"); r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		for _, act := range []string{"allow", "discard"} {
			want(t, act+" "+name, ada.send(a.in("held/%s", act), form, change), http.StatusForbidden)
		}
	}
	want(t, "without the session's token", ada.request(http.MethodPost, a.in("held/discard"), form.Encode()), http.StatusForbidden)
	if len(h.asked) > 0 {
		t.Errorf("attacks did %q", h.asked)
	}
}

// TestAttackByTheNameOfAHeldFile checks that no page contains the raw path, which a
// sandbox chooses and which may have any bytes and length.
func TestAttackByTheNameOfAHeldFile(t *testing.T) {
	a, h := newHolding(t)
	k := heldAt(a.ada.ID, a.space.ID)
	script := `"><script>alert(1)</script><img src=x onerror=alert(1)>`
	h.files[k] = nil
	for _, p := range []string{script, "\xff\xfe\n.md", "../../etc/passwd", strings.Repeat("a/", 2000) + "x", "\u202egnp.exe"} {
		h.files[k] = append(h.files[k], space.PendingFile{Path: p + "canary-secret", Shown: p, Why: script, Secrets: []space.PendingSecret{{Description: script, Fingerprint: canaryPrint}}})
	}
	for i := range 200 {
		h.files[k] = append(h.files[k], space.PendingFile{Path: fmt.Sprint("f", i), Shown: fmt.Sprint("f", i)})
	}
	b := a.as(a.ada)
	for _, target := range []string{"remote", "activity"} {
		res := b.get(a.in("%s", target))
		want(t, target, res, http.StatusOK)
		checkPage(t, target, res)
		if strings.Contains(res.body, "<script>alert") || strings.Contains(res.body, "<img src=x") || strings.Contains(res.body, "canary-secret") {
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
	if len(h.asked) != 1 || h.asked[0] != "discard "+script+"canary-secret" {
		t.Errorf("%q", h.asked)
	}
}
