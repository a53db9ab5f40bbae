package reviews

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"satchel/gitstore"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Git is what this package needs of the store of spaces; see *gitstore.Store.
type Git interface {
	Head(ctx context.Context, id space.SpaceID) (space.CommitID, error)
	Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.FileChange, error)
	Diff(ctx context.Context, id space.SpaceID, from, to space.CommitID) ([]space.FileChange, error)
	Log(ctx context.Context, id space.SpaceID, o gitstore.LogOptions) ([]space.Commit, error)
	Show(ctx context.Context, id space.SpaceID, at space.CommitID) (space.Commit, error)
	Blob(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (space.BlobID, space.Mode, bool, error)
	// LogPage is Log of a path that looks at walk commits at most.
	LogPage(ctx context.Context, id space.SpaceID, at space.CommitID, path space.Path, cursor string, limit, walk int) ([]space.Commit, string, error)
	// Made returns the commits whose trailers this server wrote.
	Made(ctx context.Context, id space.SpaceID) (map[space.CommitID]bool, error)
	ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error)
	Commit(ctx context.Context, id space.SpaceID, cs space.ChangeSet, m space.Meta) (space.Commit, error)
}

// Options say what a Reviews works on. DB and Git are required.
type Options struct {
	DB  *database.DB
	Git Git
	// AITools name the tools by which AIs change files, as commits name them; nil
	// for DefaultAITools. What else changes a file counts as a person's doing.
	AITools []string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// DefaultAITools returns the tools by which AIs change files. A merge counts
// where it made a content that neither side had.
func DefaultAITools() []string {
	return []string{"bash", "write", "edit", "remember", "forget", "sync"}
}

// Elsewhere is the tool of what a commit made that says it was made here, while it
// was not.
const Elsewhere = "git"

// Review is a file that waits for a person's decision.
type Review struct {
	Path space.Path
	// Blob is the content that waits; empty where the file was deleted.
	Blob space.BlobID
	// Commit made it, by Tool of Client.
	Commit       space.CommitID
	Tool, Client string
	When         time.Time
	// Base is the commit that has the version before, which a person knows: what
	// Undo puts back. Empty where there was nothing at all.
	Base space.CommitID
}

// Decision is what became of a content.
type Decision string

// The decisions. Of what an AI did nobody has decided until it is kept or undone.
const (
	byPerson Decision = "person" // a person wrote it
	byAI     Decision = "ai"
	Kept     Decision = "kept"
	Undone   Decision = "undone"
)

// Decided is a decision with who made it.
type Decided struct {
	Path     space.Path
	Blob     space.BlobID
	Commit   space.CommitID // that had made the content
	Client   string
	Decision Decision
	By       space.UserID
	At       time.Time
}

// Reviews finds what waits and keeps what was decided. It is safe for concurrent
// use and starts nothing. Who calls it has checked what the person may do.
type Reviews struct {
	o  Options
	mu sync.Mutex
	at map[space.SpaceID]*state
}

// state is what waits in a space at a head. Its lock is held while that is found
// out, so that it is once.
type state struct {
	mu      sync.Mutex
	head    space.CommitID
	waiting map[space.Path]Review
}

// New returns a Reviews.
func New(o Options) (*Reviews, error) {
	if o.DB == nil || o.Git == nil {
		return nil, errors.New("reviews need a database and the store of spaces")
	}
	if o.AITools == nil {
		o.AITools = DefaultAITools()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Reviews{o: o, at: map[space.SpaceID]*state{}}, nil
}

// skills is the directory of which every file is looked at.
const skills = "skills"

// fixed are the files that every client is given.
func fixed() []space.Path { return []space.Path{"resources/context.md", "resources/instructions.md"} }

// Covers tells whether a person confirms what AIs write at a path.
func Covers(p space.Path) bool {
	return strings.HasPrefix(string(p), skills+"/") || slices.Contains(fixed(), p)
}

// maxSpaces bounds of how many spaces is remembered what waits.
const maxSpaces = 1000

func (r *Reviews) state(id space.SpaceID) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := r.at[id]
	if st == nil {
		if len(r.at) >= maxSpaces {
			clear(r.at)
		}
		st = &state{}
		r.at[id] = st
	}
	return st
}

// Waiting returns what waits at a space's head, by path.
func (r *Reviews) Waiting(ctx context.Context, id space.SpaceID) ([]Review, error) {
	st := r.state(id)
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := r.bring(ctx, id, st); err != nil {
		return nil, fmt.Errorf("reviews: %w", err)
	}
	out := make([]Review, 0, len(st.waiting))
	for _, w := range st.waiting {
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Review) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// bring brings a state to head.
func (r *Reviews) bring(ctx context.Context, id space.SpaceID, st *state) error {
	head, err := r.o.Git.Head(ctx, id)
	if err != nil || head == st.head {
		return err
	}
	if st.head != "" {
		changed, err := r.o.Git.Diff(ctx, id, st.head, head)
		if err == nil {
			return r.follow(ctx, id, st, head, changed)
		}
		if ctx.Err() != nil {
			return err
		}
		// A purge rewrote the history, or too much has changed: all is looked at.
	}
	known, err := r.known(ctx, id)
	if err != nil {
		return err
	}
	now, err := r.files(ctx, id, head)
	if err != nil {
		return err
	}
	// What was there once and is gone is looked at too.
	for _, p := range fixed() {
		if _, ok := now[p]; !ok {
			now[p] = ""
		}
	}
	for k := range known {
		if _, ok := now[k.path]; !ok {
			now[k.path] = ""
		}
	}
	l := &look{r: r, id: id, head: head, known: known}
	if err := l.surely(ctx, now); err != nil {
		return err
	}
	waiting := map[space.Path]Review{}
	for p, b := range now {
		// What was an AI's may have been brought back by a person since.
		x, ok := known[key{p, b}]
		if err := l.judge(ctx, waiting, p, b, !ok || x.decision() == byAI); err != nil {
			return err
		}
	}
	if err := r.store(ctx, id, l.found); err != nil {
		return err
	}
	st.head, st.waiting = head, waiting
	return nil
}

// follow looks at what changed since the last look.
func (r *Reviews) follow(ctx context.Context, id space.SpaceID, st *state, head space.CommitID, changed []space.FileChange) error {
	changed = slices.DeleteFunc(changed, func(c space.FileChange) bool { return !Covers(c.Path) })
	if len(changed) == 0 {
		st.head = head
		return nil
	}
	known, err := r.known(ctx, id)
	if err != nil {
		return err
	}
	waiting := maps.Clone(st.waiting)
	l := &look{r: r, id: id, head: head, known: known}
	for _, c := range changed {
		delete(waiting, c.Path)
		if err := l.judge(ctx, waiting, c.Path, c.New, true); err != nil {
			return err
		}
	}
	if err := r.store(ctx, id, l.found); err != nil {
		return err
	}
	st.head, st.waiting = head, waiting
	return nil
}

// files returns what head has at the paths that are looked at.
func (r *Reviews) files(ctx context.Context, id space.SpaceID, head space.CommitID) (map[space.Path]space.BlobID, error) {
	out := map[space.Path]space.BlobID{}
	for _, under := range append(fixed(), skills) {
		list, err := r.o.Git.Files(ctx, id, head, under)
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			if Covers(f.Path) {
				out[f.Path] = f.New
			}
		}
	}
	return out, nil
}

func (r *Reviews) byAI(c space.Commit) bool { return slices.Contains(r.o.AITools, c.Tool) }

// errNotWaiting tells that what somebody decides about is not what waits.
func errNotWaiting(p space.Path) error {
	return fault.New(fault.Conflict, "The file %s is not as you saw it any more, or somebody has decided already. Look at it again.", string(p))
}

// find returns what waits at a path, where it is still what the person saw.
func (r *Reviews) find(ctx context.Context, id space.SpaceID, st *state, p space.Path, b space.BlobID) (Review, error) {
	if err := r.bring(ctx, id, st); err != nil {
		return Review{}, fmt.Errorf("reviews: %w", err)
	}
	w, ok := st.waiting[p]
	if !ok || w.Blob != b {
		return Review{}, errNotWaiting(p)
	}
	return w, nil
}

// Keep confirms a content that waits. It is a fault.Conflict where another, or
// none, waits at the path.
func (r *Reviews) Keep(ctx context.Context, id space.SpaceID, by space.UserID, p space.Path, b space.BlobID) error {
	st := r.state(id)
	st.mu.Lock()
	defer st.mu.Unlock()
	w, err := r.find(ctx, id, st, p, b)
	if err != nil {
		return err
	}
	if err := r.decide(ctx, id, w, Kept, by); err != nil {
		return err
	}
	delete(st.waiting, p)
	return nil
}

// Undo puts back, as a commit of the person's, the version that a person knew. It
// is a fault.Conflict where the path does not have what they saw.
func (r *Reviews) Undo(ctx context.Context, id space.SpaceID, by space.UserID, p space.Path, b space.BlobID, m space.Meta) (space.Commit, error) {
	st := r.state(id)
	st.mu.Lock()
	defer st.mu.Unlock()
	w, err := r.find(ctx, id, st, p, b)
	if err != nil {
		return space.Commit{}, err
	}
	change := space.Change{Path: string(p), Op: space.Delete, Base: b}
	if b != "" {
		_, mode, ok, err := r.o.Git.Blob(ctx, id, st.head, p)
		if err != nil {
			return space.Commit{}, err
		}
		if !ok {
			return space.Commit{}, errNotWaiting(p)
		}
		change.BaseMode = mode
	}
	if w.Base != "" {
		old, mode, ok, err := r.o.Git.Blob(ctx, id, w.Base, p)
		if err != nil {
			return space.Commit{}, err
		}
		if ok {
			change.Op, change.Mode = space.Write, mode
			if change.Content, err = r.o.Git.ReadBlob(ctx, id, old); err != nil {
				return space.Commit{}, err
			}
		}
	}
	c, err := r.o.Git.Commit(ctx, id, space.ChangeSet{Changes: []space.Change{change}, Policy: space.RefuseStale}, m)
	if err != nil {
		return space.Commit{}, err
	}
	if len(c.Refused) > 0 {
		return space.Commit{}, fault.New(fault.Invalid, "The former version of %s cannot be put back: %s", string(p), c.Refused[0].Why)
	}
	// The commit is a person's, so that nothing waits even where this is not kept.
	return c, r.decide(ctx, id, w, Undone, by)
}
