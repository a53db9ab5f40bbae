package server

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/service"
	"satchel/internal/space"
)

// setting is a space without a repository, whose owner sets one while an AI writes.
type setting struct {
	t    *testing.T
	c    *Core
	ann  store.User
	form service.SetRemoteInput
}

func newSetting(t *testing.T) *setting {
	t.Helper()
	c := testCore(t)
	ann := addUser(t, c.Service, "ann", false)
	own, err := c.Accounts.SpacesOf(t.Context(), ann.ID)
	if err != nil {
		t.Fatal(err)
	}
	s := &setting{t: t, c: c, form: service.SetRemoteInput{Space: service.SpaceRef{ID: own[0].ID}, URL: "https://git.invalid/x.git", MaxSecrets: listedSecrets, Wait: time.Nanosecond}}
	s.ann.ID = ann.ID
	return s
}

// listedSecrets is how many findings a page lists at once.
const listedSecrets = 200

// aKey looks like a key, and is another one for each number.
func aKey(n int) string {
	return fmt.Sprintf("ghp_%x", sha256.Sum256(fmt.Append(nil, n)))[:40]
}

// put saves files, each as a path and what it has.
func (s *setting) put(files ...string) {
	s.t.Helper()
	var cs space.ChangeSet
	for i := 0; i < len(files); i += 2 {
		change := space.Change{Path: files[i], Content: []byte(files[i+1])}
		if f, _, err := s.c.Git.Open(s.t.Context(), s.form.Space.ID, "", space.Path(files[i])); err == nil {
			change.Base, change.BaseMode = f.Blob, f.Mode
		}
		cs.Changes = append(cs.Changes, change)
	}
	if _, err := s.c.Git.Commit(s.t.Context(), s.form.Space.ID, cs, space.Meta{Tool: "bash", Client: "ai"}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *setting) set() []service.FoundSecret {
	s.t.Helper()
	st, err := s.c.Service.SetRemote(s.t.Context(), service.Person(s.ann), s.form)
	if err != nil {
		s.t.Fatal(err)
	}
	return st.Secrets
}

// none has the owner say of all that is shown that it is no secret.
func (s *setting) none(shown []service.FoundSecret) {
	for _, f := range shown[:min(len(shown), listedSecrets)] {
		s.form.AllowSecrets = append(s.form.AllowSecrets, f.Fingerprint)
	}
}

// stands fails unless so many are allowed and the repository is set, or is not.
func (s *setting) stands(what string, allowed int, set bool) {
	s.t.Helper()
	list, err := s.c.secrets.List(s.t.Context(), s.form.Space.ID)
	if err != nil || len(list) != allowed || s.c.remotes.Has(s.form.Space.ID) != set {
		s.t.Errorf("%s: %d allowed, set: %v, %v", what, len(list), s.c.remotes.Has(s.form.Space.ID), err)
	}
}

// Attack: an AI saves a key after the owner was shown what looks like one. It is neither
// allowed nor pushed without having been shown.
func TestAttackKeyBehindTheListThatWasShown(t *testing.T) {
	s := newSetting(t)
	s.put("example.md", aKey(1)+"\n")
	shown := s.set()
	if len(shown) != 1 || shown[0].Path != "example.md" || shown[0].Commit == "" {
		t.Fatalf("%+v", shown)
	}
	s.none(shown)
	s.put("notes/other.md", aKey(2)+"\n")
	if shown = s.set(); len(shown) != 1 || shown[0].Path != "notes/other.md" {
		t.Errorf("the later key: %+v", shown)
	}
	s.stands("a key after the list", 0, false)
	s.none(shown)
	if shown = s.set(); len(shown) > 0 {
		t.Errorf("%+v", shown)
	}
	s.stands("all were shown", 2, true)
}

// Attack: an AI writes so many look-alikes that a key is behind what a page lists. It is
// shown in a later round, and who goes through them all connects the repository. The same
// value in many places is one.
func TestAttackKeyUnderLookAlikes(t *testing.T) {
	s := newSetting(t)
	var many strings.Builder
	for n := range 300 {
		many.WriteString(aKey(n) + "\n")
		if n%50 == 49 {
			s.put(fmt.Sprintf("a/%03d.md", n), many.String(), fmt.Sprintf("b/%03d.md", n), many.String())
			many.Reset()
		}
	}
	s.put("zz.md", aKey(1000)+"\n")
	s.put("zz.md", "harmless\n") // the push takes the key along
	rounds, seen := 0, map[string]string{}
	for found := s.set(); len(found) > 0; found = s.set() {
		if rounds++; rounds > 2 {
			t.Fatalf("%d rounds", rounds)
		}
		s.stands("not all were shown", 0, false)
		for _, f := range found[:min(len(found), listedSecrets)] {
			if _, ok := seen[f.Fingerprint]; ok {
				t.Errorf("%s is shown twice", f.Path)
			}
			// What is shown is what is allowed.
			_, content, err := s.c.Git.Open(t.Context(), s.form.Space.ID, f.Commit, f.Path)
			if err != nil {
				t.Fatal(err)
			}
			line := strings.Split(string(content), "\n")[f.Line-1]
			if all := s.c.secrets.Scan("", []byte(line)); len(all) != 1 || all[0].Fingerprint != f.Fingerprint {
				t.Errorf("%s, line %d at %s has something else: %+v", f.Path, f.Line, f.Commit, all)
			}
			seen[f.Fingerprint] = string(f.Path)
		}
		s.none(found)
	}
	if rounds != 2 || len(seen) != 301 || seen[s.c.secrets.Scan("", []byte(aKey(1000)))[0].Fingerprint] != "zz.md" {
		t.Errorf("%d rounds, %d seen", rounds, len(seen))
	}
	s.stands("all were shown", 301, true)
}
