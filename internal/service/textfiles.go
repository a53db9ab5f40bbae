package service

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"

	"satchel/internal/bytesize"
	"satchel/internal/diff"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/textedit"
)

// Limits of WriteFile and EditFile.
const (
	MaxEdits     = 100     // edits in one call
	maxTextFile  = 4 << 20 // bytes of a file, before and after the change
	maxDiffLines = 20      // lines of the diff in an answer
)

// WriteFileInput is the new content of a text file.
type WriteFileInput struct {
	Space   SpaceRef `json:"space"`
	Path    string   `json:"path"`
	Content string   `json:"content"`
	// Base is the etag of the version that the content replaces. It is empty for a new file.
	Base space.BlobID `json:"base,omitempty"`
}

// EditFileInput holds changes to parts of a text file.
type EditFileInput struct {
	Space SpaceRef        `json:"space"`
	Path  string          `json:"path"`
	Edits []textedit.Edit `json:"edits"`
	// Base is the etag of the version to edit. If it is empty, EditFile edits the newest
	// version.
	Base space.BlobID `json:"base,omitempty"`
}

// ChangedFile is the result of WriteFile and EditFile.
type ChangedFile struct {
	Path space.Path   `json:"path"`
	Etag space.BlobID `json:"etag"`
	// Commit is empty if the file already had the new content.
	Commit  space.CommitID `json:"commit,omitempty"`
	Created bool           `json:"created,omitempty"`
	// Diff is empty for a new file.
	Diff diff.Text `json:"diff"`
	// Warnings concern a file that was saved.
	Warnings []space.Warning `json:"warnings,omitempty"`
	// NotFacts holds the file if it is under memory/ but not a valid fact.
	NotFacts []MemoryFact `json:"not_facts,omitempty"`
}

// WriteFile creates or replaces a text file. It returns a fault.Conflict if the file has another
// etag than Base when WriteFile commits, or if the file of Base no longer exists. A replaced file
// keeps its byte order mark and CRLF line endings. WriteFile changes nothing if the file already
// has the content.
func (s *Service) WriteFile(ctx context.Context, a Actor, in WriteFileInput) (ChangedFile, error) {
	return s.changeFile(ctx, a, "WriteFile", in.Space, fileChange{path: in.Path, base: in.Base, tool: "write", text: func(f textFile) (string, error) {
		text := textedit.Keep(f.text, in.Content)
		damaged := fault.CodeOf(f.problem) == fault.Damaged
		switch {
		case f.exists && f.problem == nil && text == f.text:
			return text, nil
		case f.problem != nil && !damaged: // a damaged file can be written again
			return "", f.problem
		case f.exists && in.Base == "":
			return "", fault.New(fault.Conflict, "%s already exists. Nothing was changed. Read the file first. To replace it, pass this base etag: %s", f.Path, f.Blob)
		}
		return text, f.checkBase(in.Base)
	}})
}

// EditFile changes parts of a text file. It applies all edits in order, or none. It applies
// them to the content that the file has when EditFile commits.
func (s *Service) EditFile(ctx context.Context, a Actor, in EditFileInput) (ChangedFile, error) {
	return s.changeFile(ctx, a, "EditFile", in.Space, fileChange{path: in.Path, base: in.Base, tool: "edit", text: func(f textFile) (string, error) {
		if n := len(in.Edits); n == 0 || n > MaxEdits {
			return "", fault.New(fault.Invalid, "Give 1 to %d edits.", MaxEdits)
		}
		if !f.exists {
			return "", fault.New(fault.NotFound, "There is no file %q.", f.Path)
		}
		if err := cmp.Or(f.checkBase(in.Base), f.problem); err != nil {
			return "", err
		}
		text, err := textedit.Apply(f.text, in.Edits, maxTextFile)
		if err != nil {
			return "", fault.Wrap(err, fault.CodeOf(err), "Nothing was changed in %s (etag %s).\n%s", f.Path, f.Blob, fault.PublicOf(err))
		}
		return text, nil
	}})
}

// fileChange is a change of a text file.
type fileChange struct {
	path string
	base space.BlobID
	tool string
	// text returns the new content of a file. Its errors end the change.
	text func(textFile) (string, error)
}

// textFile is a file before a change.
type textFile struct {
	space.Entry // without a Blob if there is no file
	exists      bool
	text        string
	problem     error // why the file cannot be changed as text
}

// checkBase returns a fault.Conflict if base is not the version of the file. An empty base
// accepts every version.
func (f textFile) checkBase(base space.BlobID) error {
	switch {
	case base == "" || f.exists && base == f.Blob:
		return nil
	case !f.exists:
		return fault.New(fault.Conflict, "%s is no longer there: it was removed or renamed. Nothing was changed. To create it again, leave out the base etag.", f.Path)
	}
	return fault.New(fault.Conflict, "%s has changed since version %s. Nothing was changed. Read the file again, and repeat the change with its etag %s.", f.Path, base, f.Blob)
}

// changeFile commits a change to the newest version of a file. It repeats the change if
// another client commits to the file meanwhile.
func (s *Service) changeFile(ctx context.Context, a Actor, operation string, ref SpaceRef, change fileChange) (ChangedFile, error) {
	v, err := s.open(ctx, a, operation, ref)
	if err != nil {
		return ChangedFile{}, err
	}
	who, err := s.onBehalf(ctx, a, ref)
	if err != nil {
		return ChangedFile{}, err
	}
	if change.path == "/library" || strings.HasPrefix(change.path, "/library/") {
		return ChangedFile{}, fault.New(fault.Invalid, "The library is read-only. Save your own text in the space, for example as knowledge/notes.md.")
	}
	p, err := space.ParsePath(change.path)
	if err != nil {
		return ChangedFile{}, err
	}
	if change.base != "" && !change.base.Valid() {
		return ChangedFile{}, fault.New(fault.Invalid, "The base etag is not an etag. An etag has 40 characters: digits and the letters a to f.")
	}
	// A refusal can be a fault.Conflict. It is not returned to onNewest, which would try again.
	var refused error
	out, err := onNewest(func() (ChangedFile, error) {
		f, err := v.textFile(ctx, p)
		if err != nil {
			return ChangedFile{}, err
		}
		text, err := change.text(f)
		if err == nil {
			err = checkText(p, text)
		}
		if err != nil {
			refused = err
			return ChangedFile{}, nil
		}
		return v.commitText(ctx, who, change.tool, f, text)
	})
	// A refusal because of secrets suggests commands, which need the user's name.
	if err = cmp.Or(err, refused); fault.CodeOf(err) == fault.Invalid {
		err = fault.Wrap(err, fault.Invalid, "%s", namedUser(fault.PublicOf(err), who.author))
	}
	return out, err
}

// textFile reads the newest version of a file. The error says why no file can be written at
// the path.
func (v View) textFile(ctx context.Context, p space.Path) (textFile, error) {
	f := textFile{Entry: space.Entry{Path: p}}
	at, err := v.Head(ctx)
	if err != nil {
		return f, err
	}
	e, ok, err := v.Find(ctx, at, p)
	switch {
	case err != nil:
		return f, err
	case !ok:
		above, err := v.FileAbove(ctx, at, p)
		if err == nil && above != "" {
			err = fault.New(fault.Invalid, "%s is a file or a link, so nothing can be below it.", above)
		}
		return f, err
	case e.Dir:
		return f, fault.New(fault.Invalid, "%s is a directory. Add the name of a file.", p)
	case e.Mode == space.Symlink:
		return f, fault.New(fault.Invalid, "%s is a link. Name the file that the link leads to.", p)
	}
	f.Entry, f.exists = e, true
	if e.Size > maxTextFile {
		f.problem = fault.New(fault.TooLarge, "%s has %s. Files of up to %s can be changed as text.", p, bytesize.Text(e.Size), bytesize.Text(maxTextFile))
		return f, nil
	}
	b, err := v.ReadBlob(ctx, e.Blob)
	switch {
	case fault.CodeOf(err) == fault.Damaged:
		f.problem = space.Damaged(p, err)
		return f, nil
	case err != nil:
		return f, err
	}
	f.text = string(b)
	f.problem = checkText(p, f.text)
	return f, nil
}

// checkText returns an error if the content of the file at p is not text or is too large.
func checkText(p space.Path, text string) error {
	switch n := int64(len(text)); {
	case n > maxTextFile:
		return fault.New(fault.TooLarge, "%s would have %s. Files of up to %s can be written as text.", p, bytesize.Text(n), bytesize.Text(maxTextFile))
	case strings.ContainsRune(text, 0) || !utf8.ValidString(text):
		return fault.New(fault.Invalid, "%s is not a text file: it has bytes that are not UTF-8, or NUL.", p)
	}
	return nil
}

// commitText commits the new content of a file. It returns a fault.Conflict if another client
// has changed the file since f was read, because Commit compares the file with f under the lock
// of the space.
func (v View) commitText(ctx context.Context, who Actor, tool string, f textFile, text string) (ChangedFile, error) {
	out := ChangedFile{Path: f.Path, Etag: f.Blob}
	if f.exists && f.problem == nil && text == f.text {
		return out, nil
	}
	c, err := v.s.commitAll(ctx, who, v.ID, []space.Change{
		{Path: string(f.Path), Content: []byte(text), Mode: f.Mode, Base: f.Blob, BaseMode: f.Mode},
	}, who.commitMeta(tool, ""))
	switch {
	case err != nil:
		return ChangedFile{}, err
	case !c.Changed && f.problem != nil: // a damaged file already had this content
		return out, nil
	case !c.Changed:
		return ChangedFile{}, fault.New(fault.Conflict, "Another client has just written the same text to %s.", f.Path)
	}
	out.Commit, out.Etag, out.Warnings, out.Created = c.ID, c.Files[0].New, c.Warnings, !f.exists
	out.NotFacts = v.notFacts(ctx, []space.Commit{c})
	if f.exists && f.problem == nil {
		out.Diff = diff.Unified(f.text, text, maxDiffLines)
	}
	return out, nil
}
