package service_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"satchel/gitstore"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/internal/textedit"
)

// note is a file that two clients change.
type note struct {
	*servicetest.World
	t    *testing.T
	path string
}

func newNote(t *testing.T, content string) note {
	t.Helper()
	n := note{servicetest.New(t, memoryDay), t, "knowledge/note.md"}
	n.Write(map[string]string{n.path: content})
	return n
}

func (n note) write(content string, base space.BlobID) (service.ChangedFile, error) {
	n.t.Helper()
	return n.WriteFile(n.t.Context(), memoryClient(n.World, "x"), service.WriteFileInput{Space: service.SpaceRef{ID: n.Space}, Path: n.path, Content: content, Base: base})
}

func (n note) edit(base space.BlobID, edits ...textedit.Edit) (service.ChangedFile, error) {
	n.t.Helper()
	return n.EditFile(n.t.Context(), memoryClient(n.World, "x"), service.EditFileInput{Space: service.SpaceRef{ID: n.Space}, Path: n.path, Edits: edits, Base: base})
}

// entry returns the file at head.
func (n note) entry() space.Entry {
	n.t.Helper()
	e, err := n.Git.Lookup(n.t.Context(), n.Space, "", space.Path(n.path))
	if err != nil {
		n.t.Fatal(err)
	}
	return e
}

// wants checks the content, and that the error has a code and names all texts.
func (n note) wants(what, content string, err error, code fault.Code, texts ...string) {
	n.t.Helper()
	if got := contentOf(n.t, n.World, space.Path(n.path)); got != content {
		n.t.Errorf("%s: the file has %q, want %q", what, got, content)
	}
	if fault.CodeOf(err) != code {
		n.t.Errorf("%s: %v, want %q", what, err, code)
	}
	for _, x := range texts {
		if !strings.Contains(fault.PublicOf(err), x) {
			n.t.Errorf("%s: %q lacks %q", what, fault.PublicOf(err), x)
		}
	}
}

func swap(old, repl string) textedit.Edit { return textedit.Edit{Old: old, New: repl} }

// A new file needs no base. To replace an existing file, a write needs its etag.
func TestWriteFile(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	n := note{w, t, "knowledge/deep/note.md"}
	first, err := n.write("one\n", "")
	n.wants("a new file", "one\n", err, "")
	if !first.Created || first.Commit == "" || first.Etag != n.entry().Blob {
		t.Errorf("%+v", first)
	}
	log, err := n.Git.Log(t.Context(), n.Space, space.LogQuery{Limit: 1})
	if err != nil || log[0].Tool != "write" || log[0].Client != "x" || log[0].Message != "Add knowledge/deep/note.md" {
		t.Errorf("%+v, %v", log, err)
	}
	_, err = n.write("two\n", "")
	n.wants("no base", "one\n", err, fault.Conflict, "already exists", string(first.Etag))
	second, err := n.write("two\n", first.Etag)
	n.wants("the right base", "two\n", err, "")
	if second.Created || second.Diff.Added != 1 || second.Diff.Removed != 1 || second.Etag != n.entry().Blob {
		t.Errorf("%+v", second)
	}
	_, err = n.write("three\n", first.Etag)
	n.wants("a lost update", "two\n", err, fault.Conflict, string(second.Etag))
	for _, base := range []space.BlobID{"", first.Etag, second.Etag} {
		same, err := n.write("two\n", base)
		n.wants("the same content", "two\n", err, "")
		if same.Commit != "" || same.Etag != second.Etag {
			t.Errorf("%+v", same)
		}
	}
	_, err = n.write("four\n", "HEAD")
	n.wants("a base that is not an etag", "two\n", err, fault.Invalid, "etag")
	if _, err = n.edit(""); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("no edits: %v", err)
	}

	n.path = "knowledge/gone.md"
	_, err = n.write("x", first.Etag)
	n.wants("a file that is gone", "", err, fault.Conflict, "no longer there")
	_, err = n.write("", "")
	if err != nil || n.entry().Size != 0 {
		t.Errorf("an empty file: %v", err)
	}
}

func TestEditFile(t *testing.T) {
	n := newNote(t, "# Deploy\n\nWatch for five minutes.\nfoo\nfoo\n")
	before := n.entry().Blob
	got, err := n.edit("", swap("five", "10"), swap("10 minutes", "ten minutes"))
	n.wants("two edits", "# Deploy\n\nWatch for ten minutes.\nfoo\nfoo\n", err, "")
	if text := strings.Join(got.Diff.Lines, "\n"); !strings.Contains(text, "-Watch for five minutes.\n+Watch for ten minutes.") || got.Etag != n.entry().Blob {
		t.Errorf("%+v", got)
	}
	const now = "# Deploy\n\nWatch for ten minutes.\nfoo\nfoo\n"
	_, err = n.edit(before, swap("ten", "five"))
	n.wants("a stale base", now, err, fault.Conflict, string(got.Etag))
	_, err = n.edit(got.Etag, swap("Deploy", "Release"), swap("foo", "bar"))
	n.wants("all or none", now, err, fault.Invalid, "Nothing was changed", "edits[1]", "lines 4, 5", string(got.Etag))
	_, err = n.edit("", swap("watch for 10 minutes", "x"))
	n.wants("no match", now, err, fault.Invalid, "line 3", "Watch for ten minutes.", string(got.Etag))
	none, err := n.edit("", swap("ten", "11"), swap("11", "ten"))
	n.wants("edits that change nothing", now, err, "")
	if none.Commit != "" || none.Etag != got.Etag {
		t.Errorf("%+v", none)
	}
	_, err = n.edit(got.Etag, textedit.Edit{Old: "foo", New: "bar", All: true})
	n.wants("all", "# Deploy\n\nWatch for ten minutes.\nbar\nbar\n", err, "")
	n.path = "knowledge/none.md"
	_, err = n.edit("", swap("a", "b"))
	n.wants("no file", "", err, fault.NotFound)
	_, err = n.edit(before, swap("a", "b"))
	n.wants("no file, with a base", "", err, fault.NotFound)
}

// Line endings, a byte order mark, a missing line ending at the end and the mode stay.
func TestChangesKeepLineEndingsAndMode(t *testing.T) {
	const bom = "\ufeff"
	n := newNote(t, bom+"one\r\ntwo\r\nthree")
	_, err := n.edit("", swap("one\ntwo\n", "1\n2\n2½\n"), swap("three\n", "3\n"))
	n.wants("an edit", bom+"1\r\n2\r\n2½\r\n3", err, "")
	_, err = n.write("a\nb\n", n.entry().Blob)
	n.wants("a write", bom+"a\r\nb\r\n", err, "")

	_, err = n.Git.Commit(t.Context(), n.Space, space.ChangeSet{Changes: []space.Change{{Path: "run.sh", Content: []byte("true\n"), Mode: space.Executable}}}, space.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	n.path = "run.sh"
	if _, err = n.edit("", swap("true", "false")); err != nil || n.entry().Mode != space.Executable {
		t.Errorf("mode %v, %v", n.entry().Mode, err)
	}
	if _, err = n.write("exit 1\n", n.entry().Blob); err != nil || n.entry().Mode != space.Executable {
		t.Errorf("mode %v, %v", n.entry().Mode, err)
	}
}

// Paths and files that cannot be changed as text are refused, and nothing changes.
func TestRefusedTextFiles(t *testing.T) {
	n := newNote(t, "a\n")
	long := strings.Repeat("abcdefg\n", 1<<19) // 4 MiB
	_, err := n.Git.Commit(t.Context(), n.Space, space.ChangeSet{Changes: []space.Change{
		{Path: "link.md", Content: []byte("knowledge/note.md"), Mode: space.Symlink}, {Path: "dir", Content: []byte("knowledge"), Mode: space.Symlink},
		{Path: "image.png", Content: []byte("\x89PNG\x00a")}, {Path: "latin1.txt", Content: []byte("caf\xe9 a\n")}, {Path: "huge.txt", Content: []byte(long + "x")}, {Path: "large.txt", Content: []byte(long)},
	}}, space.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	head, err := n.Git.Head(t.Context(), n.Space)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		code fault.Code
		text string
	}{
		"knowledge":             {fault.Invalid, "directory"},
		"link.md":               {fault.Invalid, "link"},
		"dir/note.md":           {fault.Invalid, "dir is a file or a link"},
		"knowledge/note.md/a/b": {fault.Invalid, "knowledge/note.md is a file"},
		"image.png":             {fault.Invalid, "not a text file"},
		"latin1.txt":            {fault.Invalid, "not a text file"},
		"huge.txt":              {fault.TooLarge, "MB"},
		"/library/docs/x.md":    {fault.Invalid, "read-only"},
		"/library":              {fault.Invalid, "read-only"},
		"../x.md":               {fault.Invalid, "path"},
		".git/config":           {fault.Invalid, "git"},
		"a//b.md":               {fault.Invalid, "path"},
		"":                      {fault.Invalid, "empty"},
		".github/workflows/x":   {fault.Forbidden, "workflow"},
	} {
		n.path = path
		for what, change := range map[string]func() error{
			"write": func() error {
				base := space.BlobID("")
				if e, err := n.Git.Lookup(t.Context(), n.Space, "", space.Path(path)); err == nil {
					base = e.Blob
				}
				_, err := n.write("text\n", base)
				return err
			},
			"edit": func() error {
				_, err := n.edit("", swap("a", "b"))
				return err
			},
		} {
			if err := change(); what == "edit" && path == ".github/workflows/x" && fault.CodeOf(err) == fault.NotFound {
				continue
			} else if fault.CodeOf(err) != want.code || !strings.Contains(fault.PublicOf(err), want.text) {
				t.Errorf("%s %q: %v", what, path, err)
			}
		}
	}
	n.path = "large.txt"
	if _, err := n.edit("", textedit.Edit{Old: "abcdefg", New: "abcdefgh", All: true}); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("a file that would be too large: %v", err)
	}
	if _, err := n.write(long+"x", n.entry().Blob); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("a content that is too large: %v", err)
	}
	if _, err := n.write("a\x00b", n.entry().Blob); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a NUL: %v", err)
	}
	if now, err := n.Git.Head(t.Context(), n.Space); err != nil || now != head {
		t.Errorf("a refused change made the commit %s, %v", now, err)
	}
	// The largest file can be edited.
	if got, err := n.edit("", swap("a"+long[1:8]+long[:1], "x")); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("%+v, %v", got.Diff, err)
	}
	if got, err := n.edit("", textedit.Edit{Old: "abcdefg", New: "ABCDEFG", All: true}); err != nil || got.Diff.Added != 1<<19 || len(got.Diff.Lines) > 20 {
		t.Errorf("%d lines, %v", len(got.Diff.Lines), err)
	}
}

// A text that looks like a secret is refused as in every other commit.
func TestWriteASecret(t *testing.T) {
	w := screened(t)
	n := note{w, t, "knowledge/login.md"}
	_, err := n.write("The password is hunter2\n", "")
	n.wants("write", "", err, fault.Invalid, "It looks like a password.")
	_, err = n.write("The password is secret\n", "")
	n.wants("write", "The password is secret\n", err, "")
	_, err = n.edit("", swap("secret", "hunter2"))
	n.wants("edit", "The password is secret\n", err, fault.Invalid, "It looks like a password.")
}

// A file under memory/ that is not a valid fact is saved and reported.
func TestWriteAFileThatIsNotAFact(t *testing.T) {
	n := note{servicetest.New(t, memoryDay), t, "memory/preference/tea.md"}
	got, err := n.write("I like tea\n", "")
	if n.wants("no fact", "I like tea\n", err, ""); len(got.NotFacts) != 1 || got.NotFacts[0].Problem == "" {
		t.Errorf("%+v", got)
	}
	got, err = n.edit("", swap("I like tea\n", "---\nvalue: Likes tea\n---\n"))
	if err != nil || len(got.NotFacts) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A commit by another client between the read and the commit of an edit loses nothing: the
// edit applies to the newer version, or says why it cannot.
func TestEditDuringAnotherCommit(t *testing.T) {
	var meanwhile func()
	w := servicetest.Empty(t, memoryDay, servicetest.Setup{Git: func(o *gitstore.Options) {
		// The screening runs after the operation has read the file, and before the lock.
		o.Screen = func(context.Context, space.SpaceID, space.Path, []byte, func() ([]byte, error)) error {
			if f := meanwhile; f != nil {
				meanwhile = nil
				f()
			}
			return nil
		}
	}})
	w.Space = space.NewSpaceID()
	if _, err := w.Git.Create(t.Context(), w.Space, space.ChangeSet{Changes: []space.Change{{Path: "knowledge/note.md", Content: []byte("one\ntwo\nthree\n")}}}, space.Meta{}); err != nil {
		t.Fatal(err)
	}
	n := note{w, t, "knowledge/note.md"}
	// bash returns a function that commits as a sandbox does, which keeps both versions.
	bash := func(op space.Op, content string) func() {
		return func() {
			c := space.Change{Path: n.path, Op: op, Content: []byte(content), Base: n.entry().Blob}
			if _, err := n.Git.Commit(context.Background(), n.Space, space.ChangeSet{Changes: []space.Change{c}, Policy: space.KeepBoth}, space.Meta{Tool: "bash"}); err != nil {
				t.Error(err)
			}
		}
	}
	meanwhile = bash(space.Write, "one\ntwo\nthree\nfour\n")
	_, err := n.edit("", swap("one", "1"))
	n.wants("another place", "1\ntwo\nthree\nfour\n", err, "")

	meanwhile = bash(space.Write, "uno\ntwo\nthree\nfour\n")
	_, err = n.edit("", swap("1", "first"))
	n.wants("the same place", "uno\ntwo\nthree\nfour\n", err, fault.Invalid, "does not occur", string(n.entry().Blob))

	base := n.entry().Blob
	meanwhile = bash(space.Write, "zero\n")
	_, err = n.edit(base, swap("two", "2"))
	n.wants("an edit of a version", "zero\n", err, fault.Conflict, string(n.entry().Blob))

	base = n.entry().Blob
	meanwhile = bash(space.Write, "bash\n")
	_, err = n.write("write\n", base)
	n.wants("a write", "bash\n", err, fault.Conflict, string(n.entry().Blob))

	meanwhile = bash(space.Write, "both\n")
	got, err := n.write("both\n", n.entry().Blob)
	if n.wants("the same write", "both\n", err, ""); got.Commit != "" || got.Etag != n.entry().Blob {
		t.Errorf("%+v", got)
	}

	base = n.entry().Blob
	meanwhile = bash(space.Delete, "")
	_, err = n.write("write\n", base)
	n.wants("a removed file", "", err, fault.Conflict, "no longer there")

	meanwhile = func() {
		if _, err := n.Git.Commit(context.Background(), n.Space, space.ChangeSet{Changes: []space.Change{{Path: n.path, Content: []byte("theirs\n")}}}, space.Meta{}); err != nil {
			t.Error(err)
		}
	}
	_, err = n.write("mine\n", "")
	n.wants("two new files", "theirs\n", err, fault.Conflict, "already exists", string(n.entry().Blob))

	base = n.entry().Blob
	meanwhile = func() {
		cs := space.ChangeSet{Changes: []space.Change{{Path: n.path, Op: space.Delete, Base: base}, {Path: n.path + "/below.md", Content: []byte("x")}}}
		if _, err := n.Git.Commit(context.Background(), n.Space, cs, space.Meta{}); err != nil {
			t.Error(err)
		}
	}
	if _, err = n.edit("", swap("theirs", "x")); fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.PublicOf(err), "directory") {
		t.Errorf("a directory in the place of the file: %v", err)
	}
}

// If several clients edit one file at once, no edit is lost. If several clients replace the
// same version, one succeeds.
func TestConcurrentEditsAndWrites(t *testing.T) {
	const clients, edits = 4, 10
	var text strings.Builder
	for c := range clients {
		for i := range edits {
			fmt.Fprintf(&text, "client %d edit %d: no\n", c, i)
		}
	}
	n := newNote(t, text.String())
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := range edits {
				line := fmt.Sprintf("client %d edit %d: ", c, i)
				if _, err := n.edit("", swap(line+"no\n", line+"yes\n")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n.wants("all edits", strings.ReplaceAll(text.String(), "no", "yes"), nil, "")

	base := n.entry().Blob
	errs := make([]error, clients)
	for c := range clients {
		wg.Go(func() { _, errs[c] = n.write(fmt.Sprint("by ", c), base) })
	}
	wg.Wait()
	wrote := 0
	for c, err := range errs {
		switch fault.CodeOf(err) {
		case "":
			wrote++
			n.wants("the write that succeeded", fmt.Sprint("by ", c), nil, "")
		case fault.Conflict:
		default:
			t.Error(err)
		}
	}
	if wrote != 1 {
		t.Errorf("%d clients replaced the same version", wrote)
	}
}
