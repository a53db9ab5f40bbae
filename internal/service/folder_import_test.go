package service_test

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
)

// folder returns files, given as pairs of path and content.
func folder(pairs ...string) (files []service.FolderFile) {
	for i := 0; i+1 < len(pairs); i += 2 {
		files = append(files, service.FolderFile{Path: pairs[i], Size: int64(len(pairs[i+1])), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(pairs[i+1])), nil }})
	}
	return files
}

// A folder is imported as it is, in one commit. What the space already has is not written again,
// and a dry run changes nothing.
func TestImportFolder(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	w.Write(map[string]string{"in/notes/same.md": "Same", "in/notes/mine.md": "Mine", "in/notes/dir/a.md": "A", "in/notes/file": "F"})
	in := service.ImportFolderInput{Space: service.SpaceRef{ID: w.Space}, Dir: "in", MaxFile: 64, DryRun: true, Files: folder(
		"notes/a.md", "# A\n", "notes/deep/er/b.md", "# B\n", "notes/picture.png", "\x89PNG\x00", "notes/same.md", "Same", "notes/mine.md", "Yours",
		"notes/dir", "not a directory", "notes/file/below.md", "below", "notes/a.md", "twice",
		"notes/.obsidian/app.json", "{}", "notes/.git/config", "[core]", "notes/.env", "KEY=1", "notes/.x/"+strings.Repeat("long", 80), "", "notes/big.md", strings.Repeat("x", 65))}
	before := headOf(t, w)
	run := func() service.ImportedMemory {
		t.Helper()
		out, err := w.ImportFolder(t.Context(), service.Operator(), in)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if dry := run(); headOf(t, w) != before || dry.Commit != "" || dry.Pages.Added != 3 || dry.Pages.Unchanged != 1 || len(dry.Skipped) != 6 {
		t.Errorf("%+v", dry)
	}
	in.DryRun = false
	in.Hidden = 2 // left out by the caller
	done := run()
	if want := []string{"in/notes/a.md", "in/notes/deep/er/b.md", "in/notes/picture.png"}; !slices.Equal(done.Paths, want) {
		t.Errorf("the paths are %q", done.Paths)
	}
	if data, err := json.Marshal(done); err != nil || strings.Contains(string(data), "Paths") || done.Skipped[0].Path != "6 hidden files" {
		t.Errorf("%s, %v", data, err)
	}
	if done.Commit != headOf(t, w) || done.Pages.Added != 3 || done.Pages.Replaced != 0 || done.Pages.Unchanged != 1 || len(done.Skipped) != 6 {
		t.Errorf("%+v", done)
	}
	log, err := w.Git.Log(t.Context(), w.Space, space.LogQuery{Limit: 2})
	if err != nil || log[0].ID != done.Commit || log[1].ID != before || log[0].Message != "Import the folder notes" {
		t.Errorf("%+v, %v", log, err)
	}
	for path, content := range map[space.Path]string{"in/notes/a.md": "# A\n", "in/notes/deep/er/b.md": "# B\n", "in/notes/picture.png": "\x89PNG\x00", "in/notes/mine.md": "Mine"} {
		if got := contentOf(t, w, path); got != content {
			t.Errorf("%s: %q", path, got)
		}
	}
	if again := run(); again.Commit != "" || again.Pages.Unchanged != 4 {
		t.Errorf("%+v", again)
	}
	in.Replace = true
	if third := run(); third.Commit == "" || third.Pages.Replaced != 1 || contentOf(t, w, "in/notes/mine.md") != "Yours" {
		t.Errorf("%+v", third)
	}
}

// If one path of a folder breaks a rule, nothing is written.
func TestImportFolderWithAHostileName(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	before := headOf(t, w)
	for _, bad := range []string{
		"../x.md", "notes/../../x.md", "notes/..", "/etc/passwd", "notes//x.md", "notes/./x.md", "notes/x\x00.md", "notes/x\ny.md", "notes/\xff.md", "", "notes/",
		`notes\..\x.md`, `C:\x.md`, "C:/x.md", strings.Repeat("d/", 40) + "x.md", "notes/" + strings.Repeat("x", 256),
	} {
		_, err := w.ImportFolder(t.Context(), service.Operator(), service.ImportFolderInput{Space: service.SpaceRef{ID: w.Space}, Files: folder("notes/a.md", "A", bad, "bad", "notes/b.md", "B")})
		if fault.CodeOf(err) != fault.Invalid || fault.FieldOf(err) != "folder" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, dir := range []string{"..", "/", "a/../b", ".git"} {
		_, err := w.ImportFolder(t.Context(), service.Operator(), service.ImportFolderInput{Space: service.SpaceRef{ID: w.Space}, Dir: dir, Files: folder("notes/a.md", "A")})
		if fault.CodeOf(err) != fault.Invalid || fault.FieldOf(err) != "dir" {
			t.Errorf("into %q: %v", dir, err)
		}
	}
	if _, err := w.ImportFolder(t.Context(), service.Operator(), service.ImportFolderInput{Space: service.SpaceRef{ID: w.Space}, Files: folder(".git/config", "[core]")}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("only hidden files: %v", err)
	}
	if headOf(t, w) != before {
		t.Error("something was written")
	}
}
