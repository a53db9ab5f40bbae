package web

import (
	"context"
	"errors"
	"path"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"satchel/auth/store"
	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// EditLimits bound what the pages that change files take. Zero takes the default.
type EditLimits struct {
	MaxFile   int64 // bytes of one file, as the store of spaces has it; default 10 MiB
	MaxChange int64 // bytes of one change, likewise; default 100 MiB
	MaxText   int64 // bytes of a text that is edited in a page; default 1 MiB
	MaxFiles  int   // files that one act uploads, moves or deletes; default 1,000
	MaxFacts  int   // memory facts that are listed; default 5,000
	Uploads   int   // uploads and moves that are in memory at once; default 2
}

// Defaults of EditLimits.
const (
	DefaultMaxFile   = 10 << 20
	DefaultMaxChange = 100 << 20
	DefaultMaxText   = 1 << 20
	DefaultMaxFiles  = 1000
	DefaultMaxFacts  = 5000
	DefaultUploads   = 2
)

func (l EditLimits) withDefaults() EditLimits {
	or := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	or(&l.MaxFile, DefaultMaxFile)
	or(&l.MaxChange, DefaultMaxChange)
	or(&l.MaxText, DefaultMaxText)
	for v, d := range map[*int]int{&l.MaxFiles: DefaultMaxFiles, &l.MaxFacts: DefaultMaxFacts, &l.Uploads: DefaultUploads} {
		if *v <= 0 {
			*v = d
		}
	}
	l.MaxText = min(l.MaxText, l.MaxFile)
	return l
}

// editing is the pages that change what a space holds.
type editing struct {
	*Site
	limits  EditLimits
	uploads chan struct{}                        // one for each upload or move in memory
	facts   *lru.Cache[space.BlobID, facts.Fact] // by blob, which never changes; whoever can name a blob may read it
}

// routeEditing adds the pages that change files, and those of memory facts.
func (s *Site) routeEditing() {
	kept, _ := lru.New[space.BlobID, facts.Fact](factCacheEntries)
	e := &editing{Site: s, limits: s.Editing, facts: kept}
	e.uploads = make(chan struct{}, e.limits.Uploads)
	// A text is sent with its line ends doubled, or each byte as three.
	text := 3*e.limits.MaxText + MaxFormBytes
	e.HandleLarge("POST /spaces/{id}/edit/{path...}", text, e.saveEdit)
	e.HandleLarge("POST /spaces/{id}/new", text, e.saveNew)
	e.HandleLarge("POST /spaces/{id}/upload", e.limits.MaxChange+1<<20, e.saveUpload)
	s.Handle("GET /spaces/{id}/edit/{path...}", LimitPage, SignedIn, e.showEdit)
	s.Handle("GET /spaces/{id}/new", LimitPage, SignedIn, e.showNew)
	s.Handle("GET /spaces/{id}/upload", LimitPage, SignedIn, e.showUpload)
	s.Handle("GET /spaces/{id}/rename/{path...}", LimitPage, SignedIn, e.showRename)
	s.Handle("POST /spaces/{id}/rename/{path...}", LimitPage, SignedIn, e.saveRename)
	s.Handle("GET /spaces/{id}/delete/{path...}", LimitPage, SignedIn, e.showDelete)
	s.Handle("POST /spaces/{id}/delete/{path...}", LimitPage, SignedIn, e.saveDelete)
	e.routeMemory()
}

// dirURL is the address of the listing of a directory.
func dirURL(id space.SpaceID, dir space.Path) string {
	if dir == "" {
		return SpaceURL(id, "files", "")
	}
	return SpaceURL(id, "files", dir) + "/"
}

// parentOf is the directory that a path is in; "" is the root.
func parentOf(p space.Path) space.Path {
	if d := path.Dir(string(p)); d != "." {
		return space.Path(d)
	}
	return ""
}

// found is what is at the address of a page, at one commit.
type found struct {
	store.Membership
	at   space.CommitID
	path space.Path
	space.Entry
}

// target finds what the address of a page names, for who may change it.
func (e *editing) target(v *Visit) (found, error) {
	m, err := e.WritableSpace(v)
	if err != nil {
		return found{}, err
	}
	p, err := space.ParsePath(v.R.PathValue("path"))
	if err != nil {
		return found{}, ErrGone
	}
	f := found{Membership: m, path: p}
	if f.at, err = e.Workspace.Head(v.R.Context(), m.ID); err != nil {
		return found{}, Gone(err)
	}
	f.Entry, err = e.Workspace.Lookup(v.R.Context(), m.ID, f.at, p)
	return f, err
}

// lookup finds what is at a path of head; ok is false if nothing is.
func (e *editing) lookup(ctx context.Context, id space.SpaceID, p space.Path) (space.Entry, bool, error) {
	at, err := e.Workspace.Head(ctx, id)
	if err != nil {
		return space.Entry{}, false, err
	}
	return e.lookupAt(ctx, id, at, p)
}

func (e *editing) lookupAt(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (space.Entry, bool, error) {
	f, err := e.Workspace.Lookup(ctx, id, at, p)
	if fault.CodeOf(err) == fault.NotFound {
		return space.Entry{}, false, nil
	}
	return f, err == nil, err
}

// commit makes one commit of the changes of one act, all or none. remark is what the
// person must know about a commit that was made. An error that is a fault of the change
// itself says why it was refused; a fault.Conflict that something changed since.
func (e *editing) commit(v *Visit, id space.SpaceID, tool string, changes []space.Change, message string) (remark string, err error) {
	c, err := e.Operations.WriteFiles(v.R.Context(), v.Actor(), service.WriteFilesInput{
		Space: service.SpaceRef{ID: id}, Changes: changes, Message: message, Move: tool == space.ToolWebMove,
	})
	if err != nil {
		return "", v.NamedError(err)
	}
	return v.Remark(c), nil
}

// message is the note of a form.
func message(v *Visit) string {
	return strings.TrimSpace(strings.ReplaceAll(v.R.PostFormValue("message"), "\r\n", "\n"))
}

// maxMessage bounds a note, in bytes.
const maxMessage = 2000

var errNoBase = errors.New("what the form says it was made from is nothing that can be")
