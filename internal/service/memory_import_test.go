package service_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"satchel/auth/store"
	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
)

// claudeExport is an archive with conversations, and a memory in each line of memory.
func claudeExport(t testing.TB, conversations int, answer, memory string) []byte {
	t.Helper()
	var list []string
	for i := range conversations {
		list = append(list, fmt.Sprintf(`{"uuid": "u-%d", "name": "Talk %d", "created_at": "2025-06-01T08:00:00Z", "chat_messages": [{"sender": "human", "text": "Question %d"}, {"sender": "assistant", "text": %q}]}`, i, i, i, answer))
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range map[string]string{"conversations.json": "[" + strings.Join(list, ",") + "]", "memories.json": fmt.Sprintf(`[{"conversations_memory": %q}]`, memory)} {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func importMemory(t *testing.T, w *servicetest.World, name string, data []byte, dryRun bool) service.ImportedMemory {
	t.Helper()
	out, err := w.ImportMemory(t.Context(), service.Operator(), service.ImportMemoryInput{Space: service.SpaceRef{ID: w.Space}, Name: name, DryRun: dryRun, Stream: bytes.NewReader(data)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func headOf(t *testing.T, w *servicetest.World) space.CommitID {
	t.Helper()
	head, err := w.Git.Head(t.Context(), w.Space)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// A dry run reports what the import then does in one commit. A second import is no commit.
func TestImportMemory(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	data := claudeExport(t, 1000, "An answer", "Has a dog\nLives in Porto")
	before := headOf(t, w)
	dry := importMemory(t, w, "data.zip", data, true)
	if headOf(t, w) != before || dry.Commit != "" || dry.Pages.Added != 1000 || dry.Facts.Added != 2 || len(dry.Pages.First) != 10 || dry.Pages.First[0].Name != "Talk 0" {
		t.Errorf("%+v", dry)
	}
	done := importMemory(t, w, "data.zip", data, false)
	if done.Commit == "" || done.Pages.Added != 1000 || done.Facts.Added != 2 || done.Format != "claude" {
		t.Errorf("%+v", done)
	}
	log, err := w.Git.Log(t.Context(), w.Space, space.LogQuery{Limit: 2})
	if err != nil || log[0].ID != done.Commit || log[1].ID != before || log[0].Message != "Import data.zip" || log[0].Tool != service.ToolImport {
		t.Errorf("%+v, %v", log, err)
	}
	again := importMemory(t, w, "data.zip", data, false)
	if again.Commit != "" || again.Pages.Unchanged != 1000 || again.Facts.Unchanged != 2 || headOf(t, w) != done.Commit {
		t.Errorf("%+v", again)
	}
	if f := facts.Read([]byte(contentOf(t, w, space.Path(done.Facts.First[0].Path)))); f.Source != facts.Imported || f.Client != "claude" {
		t.Errorf("%+v", f)
	}
}

// A newer export updates pages, except those that anyone has changed.
func TestImportMemoryKeepsWhatPeopleChange(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	first := importMemory(t, w, "data.zip", claudeExport(t, 2, "An answer", "Has a dog"), false)
	mine, other := first.Pages.First[0].Path, first.Pages.First[1].Path
	fact := first.Facts.First[0].Path
	for path, content := range map[string]string{mine: contentOf(t, w, space.Path(mine)) + "My note\n", fact: "---\nvalue: Has two dogs\nsource: explicit\n---\n"} {
		e, err := w.Git.Lookup(t.Context(), w.Space, headOf(t, w), space.Path(path))
		if err == nil {
			_, err = w.WriteFiles(t.Context(), service.Operator(), service.WriteFilesInput{Space: service.SpaceRef{ID: w.Space}, Changes: []space.Change{{Path: path, Content: []byte(content), Base: e.Blob, BaseMode: e.Mode}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	second := importMemory(t, w, "data.zip", claudeExport(t, 2, "A longer answer", "Has a dog"), false)
	if second.Pages.Replaced != 1 || len(second.Skipped) != 2 {
		t.Errorf("%+v", second)
	}
	if !strings.Contains(contentOf(t, w, space.Path(mine)), "My note") || !strings.Contains(contentOf(t, w, space.Path(other)), "A longer answer") || !strings.Contains(contentOf(t, w, space.Path(fact)), "two dogs") {
		t.Error("the import replaced a change, or did not replace its own page")
	}
}

// A damaged archive changes nothing.
func TestImportMemoryOfADamagedArchive(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	before := headOf(t, w)
	data := claudeExport(t, 50, "An answer", "Has a dog")
	for n := range len(data) / 50 {
		_, err := w.ImportMemory(t.Context(), service.Operator(), service.ImportMemoryInput{Space: service.SpaceRef{ID: w.Space}, Name: "data.zip", Stream: bytes.NewReader(data[:n*50])})
		if fault.CodeOf(err) != fault.Invalid {
			t.Fatalf("%d bytes: %v", n*50, err)
		}
	}
	if headOf(t, w) != before {
		t.Error("a damaged archive changed the space")
	}
}

// Parts that look like secrets are skipped, and the rest is imported.
func TestImportMemoryLeavesSecretsOut(t *testing.T) {
	w := screened(t)
	if _, _, err := w.Accounts.CreateUser(t.Context(), store.Actor{Via: "test"}, store.NewUser{Name: "ann", Space: w.Space}); err != nil {
		t.Fatal(err)
	}
	out, err := w.ImportMemory(t.Context(), service.Operator(), service.ImportMemoryInput{Space: service.SpaceRef{ID: w.Space}, Name: "memory.txt", Stream: strings.NewReader("Drinks tea\nThe password is hunter2\n")})
	if err != nil || out.Facts.Added != 1 || len(out.Skipped) != 1 || out.Skipped[0].Why != "It looks like a password." {
		t.Errorf("%+v, %v", out, err)
	}
	if head := headOf(t, w); out.Commit != head {
		t.Errorf("%s, and the head is %s", out.Commit, head)
	}
}

// If the name of an export looks like a secret, the commit has no comment. All parts are
// imported, and the comment is no part.
func TestImportMemoryOfASecretName(t *testing.T) {
	w := screened(t)
	if _, _, err := w.Accounts.CreateUser(t.Context(), store.Actor{Via: "test"}, store.NewUser{Name: "ann", Space: w.Space}); err != nil {
		t.Fatal(err)
	}
	out, err := w.ImportMemory(t.Context(), service.Operator(), service.ImportMemoryInput{Space: service.SpaceRef{ID: w.Space}, Name: "hunter2.txt", Stream: strings.NewReader("Drinks tea\n")})
	if err != nil || out.Facts.Added != 1 || len(out.Skipped) != 0 || len(out.Warning) != 1 || out.Warning[0].Path != space.CommentPath {
		t.Errorf("%+v, %v", out, err)
	}
}

// BenchmarkImportMemory imports 1,000 conversations of 20 messages, 18 MB.
func BenchmarkImportMemory(b *testing.B) {
	answer := strings.Repeat("A sentence of an answer. ", 36)
	var messages []string
	for i := range 20 {
		messages = append(messages, fmt.Sprintf(`{"sender": %q, "text": %q}`, []string{"human", "assistant"}[i%2], answer))
	}
	var list []string
	for i := range 1000 {
		list = append(list, fmt.Sprintf(`{"uuid": "u-%d", "name": "Talk %d", "created_at": "2025-06-01T08:00:00Z", "chat_messages": [%s]}`, i, i, strings.Join(messages, ",")))
	}
	data := []byte("[" + strings.Join(list, ",") + "]")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		b.StopTimer()
		w := servicetest.New(b, memoryDay)
		b.StartTimer()
		out, err := w.ImportMemory(b.Context(), service.Operator(), service.ImportMemoryInput{Space: service.SpaceRef{ID: w.Space}, Name: "conversations.json", Stream: bytes.NewReader(data)})
		if err != nil || out.Pages.Added != 1000 {
			b.Fatalf("%+v, %v", out, err)
		}
	}
}

// The imports of one user wait for each other, and not for those of other users.
func TestImportsOfOneUserDoNotDelayOthers(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	var mine sync.WaitGroup
	defer mine.Wait()
	in := service.ImportMemoryInput{Space: service.SpaceRef{ID: w.Space}, Name: "data.zip"}
	refused := make(chan error, 6)
	for range cap(refused) { // the first reads, four wait, and one is refused
		r, pipe := io.Pipe()
		defer pipe.Close()
		in := in
		in.Stream = r
		mine.Go(func() {
			_, err := w.ImportMemory(t.Context(), service.Person(w.Owner), in)
			refused <- err
		})
	}
	if err := <-refused; fault.CodeOf(err) != fault.Limited {
		t.Fatal(err)
	}
	w.Space = space.NewSpaceID()
	if _, err := w.Git.Create(t.Context(), w.Space, space.ChangeSet{}, space.Meta{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Accounts.CreateUser(t.Context(), store.Actor{Via: "test"}, store.NewUser{Name: "bob", Space: w.Space}); err != nil {
		t.Fatal(err)
	}
	importMemory(t, w, "data.zip", claudeExport(t, 1, "An answer", "Has a dog"), false) // for bob
}
