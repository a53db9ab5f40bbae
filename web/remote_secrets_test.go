package web_test

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/web"
)

var keptField = regexp.MustCompile(`name="kept" value="([^"]+)"`)

var secretsField = regexp.MustCompile(`name="secrets" value="([^"]*)"`)

// Attack: more is allowed than the page showed, because it lists a part, or because an AI
// writes meanwhile. Decisions and the token are kept through all rounds; nothing is set
// before the last.
func TestAttackSecretsThatTheFormDidNotShow(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	b := a.as(a.ada)
	found := map[string]space.Path{} // by fingerprint
	commits := map[space.Path]space.CommitID{}
	add := func(name string, n int) {
		var files []string
		for i := range n {
			path, key := fmt.Sprintf("%s-%03d.md", name, i), keyOf(fmt.Sprint(name, i))
			found[a.service.Secrets.Scan("", []byte(key))[0].Fingerprint] = space.Path(path)
			files = append(files, path, key+"\n")
		}
		c := a.commit("Write keys", files...)
		for _, p := range found {
			if commits[p] == "" {
				commits[p] = c.ID
			}
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
		listed := strings.Count(res.body, ": AWS access key ID</li>")
		if len(prints) != n || listed != n || strings.Contains(res.body, "There are more") != more || a.service.Remotes.Has(a.space.ID) {
			t.Errorf("%s: %d listed, %d allowed", name, listed, len(prints))
		}
		for print, path := range found {
			if strings.Contains(box[1], print) != strings.Contains(res.body, `"><bdi>`+string(path)+`</bdi>`) {
				t.Errorf("%s: %s is shown or allowed alone", name, path)
			}
			if strings.Contains(box[1], print) && !strings.Contains(res.body, string(path)+"?at="+string(commits[path])) {
				t.Errorf("%s: the link to %s leads to what it has now", name, path)
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
	a.stands(a.space.ID, space.RemotePushed)
	allowed, err := a.service.Secrets.List(t.Context(), a.space.ID)
	if err != nil || len(allowed) != 302 || slices.Contains(a.origin.secrets, "canary-token") || !slices.Contains(a.origin.secrets, "canary-other") {
		t.Errorf("%d are allowed, %v", len(allowed), err)
	}
}

// keyOf returns a text that looks like a secret, another one for each name.
func keyOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "AKIA" + base32.StdEncoding.EncodeToString(sum[:])[:16]
}

// Attack: a form without fingerprints, as an earlier page sent that allowed everything.
func TestAttackAllowWithoutNames(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	a.commit("Write a key", "key.md", awsKey+"\n")
	for _, box := range []string{"1", "on", "*", "00", strings.ToUpper("aa112233445566778899"), strings.Repeat("f", 4000)} {
		want(t, box[:min(len(box), 20)], a.as(a.ada).send(a.in("remote"), url.Values{"url": {"https://git.test/me.git"}, "secrets": {box}}), http.StatusBadRequest)
	}
	if a.service.Remotes.Has(a.space.ID) {
		t.Error("the remote was set")
	}
}
