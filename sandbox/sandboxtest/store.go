package sandboxtest

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// Entry is one file of a tree.
type Entry struct {
	Mode    space.Mode
	Content string
}

// Tree maps paths to files.
type Tree map[space.Path]Entry

// Store keeps spaces in memory and implements space.Checkouts and space.Committer.
// Checkouts are directories of the test.
type Store struct {
	t   testing.TB
	dir string // holds the checkouts

	mu     sync.Mutex
	spaces map[space.SpaceID]*history
	blobs  map[space.BlobID]string
	seeds  int           // checkouts that were not released yet
	moved  chan struct{} // closed and replaced with each commit
	// FailCommit, if set, is called before each commit, which fails with its error. RefusePath, if
	// set, is called for each entry, which is refused with its error.
	FailCommit func(space.ChangeSet) error
	RefusePath func(path string) error
}

type history struct {
	commits []space.Commit
	trees   map[space.CommitID]Tree
}

var (
	_ space.Checkouts = (*Store)(nil)
	_ space.Committer = (*Store)(nil)
)

// NewStore returns a store without spaces. Create the pool after the store: then the test's
// cleanup ends the pool before it removes the checkouts.
func NewStore(t testing.TB) *Store {
	return &Store{t: t, dir: t.TempDir(), spaces: map[space.SpaceID]*history{}, blobs: map[space.BlobID]string{}, moved: make(chan struct{})}
}

// Wait waits until ok accepts the space's content, and fails the test if ctx ends first.
func (s *Store) Wait(ctx context.Context, id space.SpaceID, ok func(Tree) bool) {
	s.t.Helper()
	for {
		s.mu.Lock()
		moved, tree := s.moved, s.spaces[id].head()
		s.mu.Unlock()
		if ok(tree) {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			s.t.Fatalf("the space never held what was waited for; it holds %v", tree)
		}
	}
}

// Space creates a space with the files of the tree.
func (s *Store) Space(tree Tree) space.SpaceID {
	id := space.NewSpaceID()
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &history{trees: map[space.CommitID]Tree{}}
	s.spaces[id] = h
	s.add(h, maps.Clone(tree), space.Commit{Message: "start"})
	return id
}

// Put commits files on head as another user would; a nil Entry deletes.
func (s *Store) Put(id space.SpaceID, files map[space.Path]*Entry) space.Commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.spaces[id]
	tree := maps.Clone(h.head())
	for p, e := range files {
		if e == nil {
			delete(tree, p)
		} else {
			tree[p] = *e
		}
	}
	return s.add(h, tree, space.Commit{Message: "elsewhere"})
}

// Tree returns the files at the head of a space.
func (s *Store) Tree(id space.SpaceID) Tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.spaces[id].head())
}

// Log returns a space's commits without the first, oldest first.
func (s *Store) Log(id space.SpaceID) []space.Commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.spaces[id].commits[1:])
}

// Seeds returns how many checkouts were not released yet.
func (s *Store) Seeds() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seeds
}

func (h *history) head() Tree { return h.trees[h.commits[len(h.commits)-1].ID] }

func (s *Store) add(h *history, tree Tree, c space.Commit) space.Commit {
	if n := len(h.commits); n > 0 {
		c.Parent = h.commits[n-1].ID
	}
	sum := sha1.New()
	fmt.Fprintf(sum, "%s %d %s\n", c.Parent, len(h.commits), c.Message)
	for _, p := range slices.Sorted(maps.Keys(tree)) {
		fmt.Fprintf(sum, "%s %d %s\n", p, tree[p].Mode, s.blob(tree[p].Content))
	}
	c.ID = space.CommitID(hex.EncodeToString(sum.Sum(nil)))
	c.Changed = true
	h.commits = append(h.commits, c)
	h.trees[c.ID] = tree
	close(s.moved)
	s.moved = make(chan struct{})
	return c
}

func (s *Store) blob(content string) space.BlobID {
	h := sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(content), content)))
	b := space.BlobID(hex.EncodeToString(h[:]))
	s.blobs[b] = content
	return b
}

func (s *Store) find(id space.SpaceID) (*history, error) {
	if h := s.spaces[id]; h != nil {
		return h, nil
	}
	return nil, fault.New(fault.NotFound, "There is no such space.")
}

// Commit implements space.Committer.
func (s *Store) Commit(_ context.Context, id space.SpaceID, cs space.ChangeSet, m space.Meta) (space.Commit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.find(id)
	if err != nil {
		return space.Commit{}, err
	}
	if s.FailCommit != nil {
		if err := s.FailCommit(cs); err != nil {
			return space.Commit{}, err
		}
	}
	old := h.head()
	tree := maps.Clone(old)
	c := space.Commit{Author: m.Author, Message: m.Message, Tool: m.Tool, Client: m.Client}
	for _, ch := range cs.Changes {
		p, err := space.ParsePath(ch.Path)
		if err == nil && s.RefusePath != nil {
			err = s.RefusePath(ch.Path)
		}
		if err != nil {
			c.Rejected = append(c.Rejected, space.Rejection{Path: ch.Path, Why: fault.PublicOf(err), Err: err})
			continue
		}
		var has space.BlobID
		e, ok := old[p]
		if ok {
			has = s.blob(e.Content)
		}
		next := Entry{ch.Mode, string(ch.Content)}
		inWay := fileAbove(tree, p)
		switch {
		case ch.Op == space.Write && inWay != "" && !slices.ContainsFunc(cs.Changes, func(o space.Change) bool { return o.Path == string(inWay) }):
			// Someone else's file is at a path where this entry needs a directory.
			kept := inWay + ".conflict" + p[len(inWay):]
			tree[kept] = next
			c.Conflicts = append(c.Conflicts, space.Conflict{Path: inWay, Kept: kept})
		case ch.Op == space.Delete && !ok, ch.Op == space.Write && ok && e == next:
		case has != ch.Base || ok && e.Mode != ch.BaseMode:
			if cs.Policy == space.RefuseStale {
				return space.Commit{}, fault.New(fault.Conflict, "%s changed.", p)
			}
			conflict := space.Conflict{Path: p}
			if ch.Op == space.Write {
				conflict.Kept = p + ".conflict"
				tree[conflict.Kept] = next
			}
			c.Conflicts = append(c.Conflicts, conflict)
		case ch.Op == space.Delete:
			delete(tree, p)
		default:
			tree[p] = next
		}
	}
	s.checkTree(tree)
	c.Files = s.diff(old, tree)
	if len(c.Files) == 0 {
		c.ID = h.commits[len(h.commits)-1].ID
		return c, nil
	}
	return s.add(h, tree, c), nil
}

// fileAbove returns the file of a tree at a path where p needs a directory, or "" if
// there is none.
func fileAbove(t Tree, p space.Path) space.Path {
	for i := range len(p) {
		if p[i] == '/' {
			if _, ok := t[p[:i]]; ok {
				return p[:i]
			}
		}
	}
	return ""
}

// checkTree fails the test if a path is both a file and a directory.
func (s *Store) checkTree(t Tree) {
	for p := range t {
		if q := fileAbove(t, p); q != "" {
			s.t.Errorf("a commit has both %q and %q", q, p)
		}
	}
}

func (s *Store) diff(old, now Tree) []space.FileChange {
	var list []space.FileChange
	for p, e := range now {
		c := space.FileChange{Path: p, Status: space.Added, New: s.blob(e.Content), NewMode: e.Mode, Size: int64(len(e.Content))}
		if o, ok := old[p]; ok {
			if o == e {
				continue
			}
			c.Status, c.Old, c.OldMode = space.Modified, s.blob(o.Content), o.Mode
		}
		list = append(list, c)
	}
	for p, o := range old {
		if _, ok := now[p]; !ok {
			list = append(list, space.FileChange{Path: p, Status: space.Deleted, Old: s.blob(o.Content), OldMode: o.Mode})
		}
	}
	slices.SortFunc(list, func(a, b space.FileChange) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return list
}

// Checkout implements space.Checkouts.
func (s *Store) Checkout(_ context.Context, id space.SpaceID) (*space.Checkout, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.find(id)
	if err != nil {
		return nil, err
	}
	root, err := os.MkdirTemp(s.dir, "seed")
	if err != nil {
		return nil, err
	}
	seed := &space.Checkout{
		Head: h.commits[len(h.commits)-1].ID,
		Dir:  filepath.Join(root, "tree"), GitView: filepath.Join(root, "git"), Library: filepath.Join(root, "library"),
	}
	if err := WriteTree(seed.Dir, h.head()); err != nil {
		return nil, err
	}
	for _, d := range []string{seed.GitView, seed.Library} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	s.seeds++
	seed.Release = sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seeds--
	})
	return seed, nil
}

// WriteTree writes a tree into a new directory, with the modes of a Checkout.
func WriteTree(dir string, tree Tree) error {
	if err := makeDir(dir); err != nil {
		return err
	}
	for p, e := range tree {
		name := filepath.Join(dir, filepath.FromSlash(string(p)))
		for d := filepath.Dir(string(p)); d != "."; d = filepath.Dir(d) {
			if err := makeDir(filepath.Join(dir, d)); err != nil {
				return err
			}
		}
		if e.Mode == space.Symlink {
			if err := os.Symlink(e.Content, name); err != nil {
				return err
			}
			if err := giveAway(name); err != nil {
				return err
			}
			continue
		}
		perm := os.FileMode(0o666)
		if e.Mode == space.Executable {
			perm = 0o777
		}
		if err := os.WriteFile(name, []byte(e.Content), perm); err != nil {
			return err
		}
		if err := os.Chmod(name, perm); err != nil {
			return err
		}
		if err := giveAway(name); err != nil {
			return err
		}
	}
	return nil
}

// giveAway makes the commands' user own a file, if this process may do so. Commands can
// then change its mode and times.
func giveAway(name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(name, protocol.CommandUID, protocol.CommandUID)
}

// makeDir creates a directory that an unprivileged user inside a sandbox may write to, whatever
// the umask.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		return err
	}
	return giveAway(dir)
}

// Blob implements space.Checkouts.
func (s *Store) Blob(_ context.Context, id space.SpaceID, at space.CommitID, p space.Path) (space.BlobID, space.Mode, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.spaces[id].trees[at][p]
	if !ok {
		return "", 0, false, nil
	}
	return s.blob(e.Content), e.Mode, true, nil
}

// Files implements space.Checkouts.
func (s *Store) Files(_ context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []space.Entry
	for _, c := range s.diff(nil, s.spaces[id].trees[at]) {
		if under == "" || c.Path == under || strings.HasPrefix(string(c.Path), string(under)+"/") {
			out = append(out, space.Entry{Path: c.Path, Mode: c.NewMode, Blob: c.New, Size: c.Size})
		}
	}
	return out, nil
}

// Head implements space.Checkouts.
func (s *Store) Head(_ context.Context, id space.SpaceID) (space.CommitID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.find(id)
	if err != nil {
		return "", err
	}
	return h.commits[len(h.commits)-1].ID, nil
}

// Diff implements space.Checkouts.
func (s *Store) Diff(_ context.Context, id space.SpaceID, from, to space.CommitID) ([]space.FileChange, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.diff(s.spaces[id].trees[from], s.spaces[id].trees[to]), nil
}

// ReadBlob implements space.Checkouts.
func (s *Store) ReadBlob(_ context.Context, _ space.SpaceID, b space.BlobID) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.blobs[b]
	if !ok {
		return nil, fmt.Errorf("no blob %s", b)
	}
	return bytes.Clone([]byte(content)), nil
}
