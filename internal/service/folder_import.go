package service

import (
	"context"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// ImportFolderInput is a folder of files, as a person has it on their machine.
type ImportFolderInput struct {
	Space SpaceRef
	// Dir is the directory of the space into which the folder goes. Empty means the root.
	Dir   string
	Files []FolderFile
	// Hidden is the number of hidden files that are already left out of Files.
	Hidden int
	// MaxFile is the largest file to import, in bytes. Zero means no limit.
	MaxFile int64
	// Replace replaces files of which the space has another version. Without Replace, the
	// space's version stays.
	Replace bool
	// DryRun reports what the import would do, and changes nothing.
	DryRun bool
}

// FolderFile is a file to import. Path begins with the name of the file's folder, if the file is
// in one.
type FolderFile struct {
	Path string
	Size int64 // in bytes
	Open func() (io.ReadCloser, error)
}

// ImportFolder imports the files of a folder, as they are, in one commit. Hidden files are left
// out, and files that the space already has are not written again. If one path breaks a rule,
// nothing changes.
func (s *Service) ImportFolder(ctx context.Context, a Actor, in ImportFolderInput) (ImportedMemory, error) {
	v, err := s.open(ctx, a, "ImportFolder", in.Space)
	if err != nil {
		return ImportedMemory{}, err
	}
	files, hidden, err := in.visible()
	if err != nil {
		return ImportedMemory{}, err
	}
	end, err := s.importSlot(ctx, a.user)
	if err != nil {
		return ImportedMemory{}, err
	}
	defer end()
	return onNewest(func() (ImportedMemory, error) { return v.importFolder(ctx, a, in, files, in.Hidden+hidden) })
}

// placedFile is a file of a folder with its path in the space.
type placedFile struct {
	FolderFile
	at space.Path
}

// drive matches the beginning of an absolute path on Windows.
var drive = regexp.MustCompile(`^[A-Za-z]:/`)

// visible returns the files to import, and the number of hidden ones. Hidden files are settings of
// programs, such as .git and .obsidian, or contain keys, such as .env.
func (in ImportFolderInput) visible() (files []placedFile, hidden int, err error) {
	before := ""
	if in.Dir != "" {
		if _, err := space.ParsePath(in.Dir); err != nil {
			return nil, 0, fault.Wrap(err, fault.Invalid, "%s", fault.PublicOf(err)).In("dir")
		}
		before = in.Dir + "/"
	}
	for _, f := range in.Files {
		at, err := space.ParsePath(before + f.Path)
		if err == nil && (strings.Contains(f.Path, `\`) || drive.MatchString(f.Path)) {
			err = fault.New(fault.Invalid, "The path %q cannot be used: it is a path of another system.", f.Path)
		}
		switch {
		case space.HiddenPath(f.Path), space.RuleOf(err) == space.RuleGit:
			hidden++
		case err != nil:
			return nil, 0, fault.Wrap(err, fault.Invalid, "%s Nothing was imported. Rename the file, or leave it out.", fault.PublicOf(err)).In("folder")
		default:
			files = append(files, placedFile{f, at})
		}
	}
	if len(files) == 0 {
		return nil, 0, fault.New(fault.Invalid, "The folder has no files that can be imported. Hidden files are left out.").In("folder")
	}
	slices.SortStableFunc(files, func(a, b placedFile) int { return strings.Compare(string(a.at), string(b.at)) })
	return files, hidden, nil
}

func (v View) importFolder(ctx context.Context, a Actor, in ImportFolderInput, files []placedFile, hidden int) (ImportedMemory, error) {
	out := ImportedMemory{Format: "folder", DryRun: in.DryRun}
	if hidden > 0 {
		files := "1 hidden file"
		if hidden > 1 {
			files = fmt.Sprintf("%d hidden files", hidden)
		}
		out.skip(files, "Files and directories whose names begin with a dot are left out.")
	}
	at, err := v.Head(ctx)
	if err != nil {
		return out, err
	}
	plan, seen := importPlan{items: map[string]plannedItem{}}, map[space.Path]bool{}
	for _, f := range files {
		if seen[f.at] {
			out.skip(string(f.at), "The folder has another file at this path.")
			continue
		}
		seen[f.at] = true
		if err := v.planFile(ctx, at, f, in, &plan, &out); err != nil {
			return out, err
		}
	}
	var c space.Commit
	if len(plan.changes) > 0 && !in.DryRun {
		c, err = v.s.WriteFiles(ctx, a, WriteFilesInput{Space: in.Space, Changes: plan.changes, Partial: true, Message: in.message()})
		if err != nil {
			return ImportedMemory{}, err
		}
	}
	plan.report(c, &out)
	return out, nil
}

// foldersNamed is the maximum number of names in the text that Folders returns.
const foldersNamed = 3

// Folders returns the names of the folders as a text, and their count. The text is empty if a file
// is in no folder.
func (in ImportFolderInput) Folders() (names string, count int) {
	var all []string
	seen := map[string]bool{}
	for _, f := range in.Files {
		name, _, ok := strings.Cut(f.Path, "/")
		if !ok {
			return "", 0
		}
		if !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
	}
	names = strings.Join(all[:min(len(all), foldersNamed)], ", ")
	if rest := len(all) - foldersNamed; rest > 0 {
		names += fmt.Sprintf(" and %d more", rest)
	}
	return names, len(all)
}

// message returns a commit message that names the folders, unless a file is in no folder.
func (in ImportFolderInput) message() string {
	switch names, n := in.Folders(); n {
	case 0:
		return "Import files"
	case 1:
		return "Import the folder " + oneLine(names)
	default:
		return "Import the folders " + oneLine(names)
	}
}

// planFile compares a file of a folder with the space.
func (v View) planFile(ctx context.Context, at space.CommitID, f placedFile, in ImportFolderInput, plan *importPlan, out *ImportedMemory) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Canceled, "Interrupted.")
	}
	e, ok, err := v.Find(ctx, at, f.at)
	if err != nil {
		return err
	}
	switch {
	case ok && e.Dir:
		out.skip(string(f.at), "The space has a directory at this path, which stays.")
		return nil
	case ok && e.Mode == space.Symlink:
		out.skip(string(f.at), "The space has a link at this path, which stays.")
		return nil
	case !ok:
		above, err := v.FileAbove(ctx, at, f.at)
		if err != nil {
			return err
		}
		if above != "" {
			out.skip(string(f.at), fmt.Sprintf("The space has a file at %s, so nothing can be below it.", above))
			return nil
		}
	}
	if in.MaxFile > 0 && f.Size > in.MaxFile {
		out.skip(string(f.at), fmt.Sprintf("It has %s, and a file can have %s.", bytesize.Text(f.Size), bytesize.Text(in.MaxFile)))
		return nil
	}
	content, err := f.read()
	if err != nil {
		return err
	}
	c := space.Change{Path: string(f.at), Content: content}
	if ok {
		now, err := v.ReadBlob(ctx, e.Blob)
		if err != nil {
			return err
		}
		switch {
		case string(now) == string(content):
			out.Pages.Unchanged++
			return nil
		case !in.Replace:
			out.skip(string(f.at), "The space has another version, which stays.")
			return nil
		}
		c.Mode, c.Base, c.BaseMode = e.Mode, e.Blob, e.Mode
	}
	if in.DryRun { // without DryRun, the commit warns of secrets
		if v.s.o.ScreenSecrets && len(v.s.secrets.Scan(f.at, content)) > 0 {
			out.Warning = append(out.Warning, space.Warning{Path: string(f.at), Why: "The file may contain a password or a key. Remove the secret before you import the file."})
		}
		c.Content = nil
	}
	plan.add(c, &out.Pages, path.Base(f.Path))
	return nil
}

func (f FolderFile) read() (content []byte, err error) {
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("open a file of a folder: %w", err)
	}
	defer r.Close()
	if content, err = io.ReadAll(r); err != nil {
		return nil, fmt.Errorf("read a file of a folder: %w", err)
	}
	return content, nil
}
