package admin_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/cmd/satchel/internal/admin"
	"satchel/gitstore"
	"satchel/gitstore/remotetest"
	"satchel/internal/space"
)

// annsSpace returns a server on which ann has a space.
func annsSpace(t *testing.T) (*admin.Local, space.SpaceID) {
	t.Helper()
	l := newLocal(t)
	ann, err := l.AddUser(t.Context(), "ann", true)
	if err != nil {
		t.Fatal(err)
	}
	st, err := l.SpaceStatus(t.Context(), ann.Name)
	if err != nil {
		t.Fatal(err)
	}
	return l, st.Space.ID
}

// What may be a password is told of by its place alone, with a bound on how many and
// for how long; who set a remote is told, and it is set.
func TestSuspects(t *testing.T) {
	ctx := t.Context()
	l, id := annsSpace(t)
	const secret = "kT9-vQ2x-Lm4p-Zr7w"
	changes := []space.Change{{Path: "plain.md", Content: []byte("nothing\n")}}
	for i := range 24 {
		changes = append(changes, space.Change{Path: fmt.Sprintf("wifi-%02d.md", i), Content: []byte("# Wifi\n\npassword: " + secret + "\n")})
	}
	changes = append(changes, space.Change{Path: "zz/app.env", Content: []byte("DB_PASSWORD=" + secret + "\n")}) // is looked at first
	if _, err := l.Git.Commit(ctx, id, space.ChangeSet{Changes: changes}, space.Meta{}); err != nil {
		t.Fatal(err)
	}
	found, err := admin.SuspectsIn(ctx, l.Git, l.Secrets, id, false, 20, time.Hour)
	if err != nil || len(found.Places) != 20 || found.More != 5 || found.Partly || found.Looked != found.Files || found.Files < 25 || found.Places[0].Path != "zz/app.env" || found.Places[0].Line != 1 || found.Places[1].Path != "wifi-00.md" || found.Places[1].Line != 3 || found.Places[0].Print != found.Places[1].Print {
		t.Fatalf("%+v, %v", found, err)
	}
	if strings.Contains(fmt.Sprintf("%+v", found), secret) {
		t.Error("the value is told")
	}
	if found, err = admin.SuspectsIn(ctx, l.Git, l.Secrets, id, false, 20, time.Nanosecond); err != nil || !found.Partly || found.Looked != 0 {
		t.Errorf("without time: %+v, %v", found, err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if found, err = admin.SuspectsIn(gone, l.Git, l.Secrets, id, false, 20, time.Hour); err == nil || !found.Partly {
		t.Errorf("for nobody: %+v, %v", found, err)
	}

	server := remotetest.New(t, remotetest.Options{Password: "canary-token"})
	server.Create("notes")
	r := admin.RemoteRequest{User: "ann", URL: server.URL("notes"), Token: "canary-token", Trusted: true}
	l.SuspectTime = time.Hour
	st, err := l.SetRemote(ctx, r, func(string) {})
	if err != nil || st.Suspects == nil || len(st.Suspects.Places) != 20 || server.Head("notes", "main") == "" {
		t.Errorf("a new remote: %+v, %v", st.Suspects, err)
	}
	if st, err = l.SetRemote(ctx, r, func(string) {}); err != nil || st.Suspects != nil {
		t.Errorf("the same one again: %+v, %v", st.Suspects, err)
	}
}

// Attack: a file is written so that a look counts it and sees nothing in it.
func TestAttackLookedAtButNotSeen(t *testing.T) {
	ctx := t.Context()
	l, id := annsSpace(t)
	const plain = "DB_PASSWORD=kT9-vQ2x-Lm4p-Zr7w\n"
	wide := "\xff\xfe"
	for _, c := range plain {
		wide += string([]byte{byte(c), 0})
	}
	files := map[string]string{
		"utf-16.txt":        wide,
		"minified.json":     `{"pad":"` + strings.Repeat("lorem ipsum ", 200) + `","password":"kT9-vQ2x-Lm4p-Zr7w"}` + "\n",
		"old-line-ends.txt": strings.Repeat("a line of prose\r", 200) + strings.TrimSpace(plain) + "\r",
		"query.md":          "https://db.internal/?user=ada&password=kT9-vQ2x-Lm4p-Zr7w\n",
		"url.md":            "postgres://ada:kT9-vQ2x-Lm4p-Zr7w@db.internal/x\n",
		"block.yaml":        "password: >-\n  kT9-vQ2x-Lm4p-Zr7w\n",
		"short.txt":         "pwd=kT9-vQ2x-Lm4p-Zr7w\n",
	}
	var changes []space.Change
	for name, content := range files {
		changes = append(changes, space.Change{Path: name, Content: []byte(content)})
	}
	if _, err := l.Git.Commit(ctx, id, space.ChangeSet{Changes: changes}, space.Meta{}); err != nil {
		t.Fatal(err)
	}
	found, err := admin.SuspectsIn(ctx, l.Git, l.Secrets, id, false, 20, time.Hour)
	if err != nil || found.Partly {
		t.Errorf("%+v, %v", found, err)
	}
	for _, p := range found.Places {
		delete(files, string(p.Path))
	}
	for name := range files {
		t.Errorf("nobody is asked of %s", name)
	}
}

// A file that cannot be read takes nothing away of what the others have, and is told
// of; the remote is set.
func TestSuspectsBesideWhatCannotBeRead(t *testing.T) {
	ctx := t.Context()
	l, id := annsSpace(t)
	changes := []space.Change{{Path: "m.md"}}
	for range 2000 { // of a size that nothing else has
		changes[0].Content = append(changes[0].Content, rand.Text()+"\n"...)
	}
	for _, name := range []string{"a.md", "z.md"} {
		changes = append(changes, space.Change{Path: name, Content: []byte("# Wifi\n\npassword: kT9-vQ2x-Lm4p-Zr7w\n")})
	}
	if _, err := l.Git.Commit(ctx, id, space.ChangeSet{Changes: changes}, space.Meta{}); err != nil {
		t.Fatal(err)
	}
	// In a copy, since the store that wrote the files has them in memory.
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(l.SpacesDir)); err != nil {
		t.Fatal(err)
	}
	packs, err := filepath.Glob(filepath.Join(dir, "*", "objects", "pack", "*.pack"))
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for _, name := range packs {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n := len(changes[0].Content)
		_, after, ok := bytes.Cut(b, []byte{0x80 | 3<<4 | byte(n&15), 0x80 | byte(n>>4&127), byte(n >> 11)}) // a blob of this size
		if !ok {
			continue
		}
		copy(after, []byte{0, 0}) // where deflated data would begin
		if err := errors.Join(os.Chmod(name, 0o600), os.WriteFile(name, b, 0o600)); err != nil {
			t.Fatal(err)
		}
		damaged++
	}
	if damaged != 1 {
		t.Fatal(damaged, packs)
	}
	if l.Git, err = gitstore.Open(gitstore.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Git.Close(); err != nil {
			t.Error(err)
		}
	})
	check := func(name string, found admin.Suspected) {
		t.Helper()
		if len(found.Places) != 2 || found.Places[1].Path != "z.md" || !found.Partly || found.Looked != found.Files-1 {
			t.Errorf("%s: %+v", name, found)
		}
	}
	found, err := admin.SuspectsIn(ctx, l.Git, l.Secrets, id, false, 20, time.Hour)
	if err == nil {
		t.Error("nobody is told of the file")
	}
	check("a look", found)
	server := remotetest.New(t, remotetest.Options{Password: "canary-token"})
	server.Create("notes")
	l.SuspectTime = time.Hour
	l.Unscreened = true // or the review of all that was saved ends at the file
	r := admin.RemoteRequest{User: "ann", URL: server.URL("notes"), Token: "canary-token", Trusted: true}
	st, err := l.SetRemote(ctx, r, func(string) {})
	if err != nil || st.Suspects == nil {
		t.Fatalf("%+v, %v", st.Suspects, err)
	}
	check("a remote", *st.Suspects)
}

// Attack: a password behind so many decoys that a look at the file ends before it.
func TestAttackAFileOfDecoys(t *testing.T) {
	ctx := t.Context()
	l, id := annsSpace(t)
	text := strings.Repeat("token=h7Gq-92kLmZ1 ", 3000) + "\nDB_PASSWORD=kT9-vQ2x-Lm4p-Zr7w\n"
	if _, err := l.Git.Commit(ctx, id, space.ChangeSet{Changes: []space.Change{{Path: "app.env", Content: []byte(text)}}}, space.Meta{}); err != nil {
		t.Fatal(err)
	}
	found, err := admin.SuspectsIn(ctx, l.Git, l.Secrets, id, false, 20, time.Hour)
	if err != nil || !found.Partly || found.Looked != found.Files-1 || len(found.Places) == 0 {
		t.Errorf("%+v, %v", found, err)
	}
}
