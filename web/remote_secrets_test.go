package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// keyPrint is the fingerprint of a secret in a space.
const keyPrint = "00112233445566778899"

var keptField = regexp.MustCompile(`name="kept" value="([^"]+)"`)

var secretsField = regexp.MustCompile(`name="secrets" value="([^"]*)"`)

// Attack: more is allowed than the page showed, because it lists a part, or because an AI
// writes meanwhile. Decisions and the token are kept through all rounds; nothing is set
// before the last.
func TestAttackSecretsThatTheFormDidNotShow(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	b := a.as(a.ada)
	add := func(name string, n int) {
		for i := range n {
			at := len(a.remotes.found)
			a.remotes.found = append(a.remotes.found, service.FoundSecret{Path: space.Path(fmt.Sprintf("%s-%03d.md", name, i)), Line: i, Commit: a.head(), Description: "a key", Fingerprint: fmt.Sprintf("%020x", at)})
		}
	}
	add("x", 300)
	shown := map[string]bool{}
	form := url.Values{"url": {"https://git.test/me.git"}, "token": {"canary-token"}}
	round := func(name string, form url.Values, n int, more bool) url.Values {
		t.Helper()
		res := b.send(a.in("remote"), form)
		want(t, name, res, http.StatusBadRequest)
		checkPage(t, name, res)
		box, kept := secretsField.FindStringSubmatch(res.body), keptField.FindStringSubmatch(res.body)
		if box == nil || kept == nil {
			t.Fatalf("%s: %s", name, heading(res.body))
		}
		prints := strings.Fields(box[1])
		listed := strings.Count(res.body, ": a key</li>")
		if len(prints) != n || listed != n || strings.Contains(res.body, "There are more") != more || len(a.remotes.set) > 0 {
			t.Errorf("%s: %d listed, %d allowed", name, listed, len(prints))
		}
		for _, f := range a.remotes.found {
			if strings.Contains(box[1], f.Fingerprint) != strings.Contains(res.body, `"><bdi>`+string(f.Path)+`</bdi>`) {
				t.Errorf("%s: %s is shown or allowed alone", name, f.Path)
			}
			if strings.Contains(box[1], f.Fingerprint) && !strings.Contains(res.body, string(f.Path)+"?at="+string(f.Commit)) {
				t.Errorf("%s: the link to %s leads to what it has now", name, f.Path)
			}
		}
		for _, p := range prints {
			if shown[p] {
				t.Errorf("%s: %s again", name, p)
			}
			shown[p] = true
		}
		return url.Values{"url": form["url"], "kept": {kept[1]}, "secrets": {box[1]}}
	}
	first := round("first", form, 200, true)
	clear(shown)
	unticked := url.Values{"url": first["url"], "kept": first["kept"]}
	first = round("not ticked", unticked, 200, true)
	second := round("second", first, 100, false)
	add("behind", 1)
	third := round("behind the list", second, 1, false)
	third.Set("url", "https://git.test/other.git") // which gets no token of the first
	third.Set("token", "canary-other")
	add("late", 1)
	fourth := round("late", third, 1, false)
	want(t, "the last", b.send(a.in("remote"), fourth), http.StatusSeeOther)
	if s := a.remotes.set; len(s) != 1 || len(s[0].AllowSecrets) != 302 || s[0].Token != "canary-other" {
		t.Errorf("%+v", s)
	}
}

// Attack: a form without fingerprints, as an earlier page sent that allowed everything.
func TestAttackAllowWithoutNames(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	a.remotes.found = []service.FoundSecret{{Path: "key.md", Line: 1, Description: "a key", Fingerprint: keyPrint}}
	for _, box := range []string{"1", "on", "*", "00", strings.ToUpper("aa112233445566778899"), strings.Repeat("f", 4000)} {
		want(t, box[:min(len(box), 20)], a.as(a.ada).send(a.in("remote"), url.Values{"url": {"https://git.test/me.git"}, "secrets": {box}}), http.StatusBadRequest)
	}
	if len(a.remotes.set) > 0 {
		t.Errorf("%+v", a.remotes.set)
	}
}
