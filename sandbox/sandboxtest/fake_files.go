//go:build unix

package sandboxtest

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// snapshot is the state of a path at one scan.
type snapshot struct {
	mode    space.Mode
	dir     bool
	content string
	problem string
}

// scan returns a snapshot of everything below root, by relative path.
func scan(root string) (map[string]snapshot, error) {
	found := map[string]snapshot{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // the file was removed meanwhile
		}
		if err != nil || name == root {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		s, err := look(name)
		if err == nil {
			found[filepath.ToSlash(rel)] = s
		}
		return nil
	})
	return found, err
}

func look(name string) (snapshot, error) {
	st, err := os.Lstat(name)
	if err != nil {
		return snapshot{}, err
	}
	switch {
	case st.IsDir():
		return snapshot{dir: true}, nil
	case st.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(name)
		return snapshot{mode: space.Symlink, content: target}, err
	case !st.Mode().IsRegular():
		return snapshot{problem: errNotRegular.Error()}, nil
	}
	content, err := os.ReadFile(name)
	s := snapshot{content: string(content)}
	if st.Mode()&0o111 != 0 {
		s.mode = space.Executable
	}
	return s, err
}

func (a *fakeAgent) Collect(_ context.Context, l protocol.CollectLimits) (protocol.Batch, error) {
	a.files.Lock()
	defer a.files.Unlock()
	a.mu.Lock()
	err := a.errLocked()
	a.mu.Unlock()
	if err != nil {
		return protocol.Batch{}, err
	}
	now, err := scan(a.space)
	if err != nil {
		return protocol.Batch{}, err
	}
	a.fake.mu.Lock()
	busy := a.fake.busy
	a.fake.mu.Unlock()
	a.batch++
	b := protocol.Batch{ID: a.batch}
	pending := map[string]snapshot{}
	total := int64(0)
	names := map[string]bool{}
	for p := range a.acked {
		names[p] = true
	}
	for p := range now {
		names[p] = true
	}
	for _, p := range slices.Sorted(maps.Keys(names)) {
		s, exists := now[p]
		old, known := a.acked[p]
		if exists && known && s == old {
			continue
		}
		_, parent := now[path.Dir(p)]
		if !exists && path.Dir(p) != "." && !parent {
			continue // the entry of the deleted directory covers this path
		}
		e := protocol.Entry{Path: p, Deleted: !exists, Dir: s.dir, Mode: s.mode, Size: int64(len(s.content)), Problem: s.problem}
		switch {
		case s.dir && !known:
		case e.Size > l.FileSize:
			e.Problem = "it is too large"
		default:
			e.Content = []byte(s.content)
		}
		e.Busy = exists && busy != nil && busy(p)
		if len(b.Entries) >= l.Entries || total+int64(len(e.Content)) > l.Total {
			b.More = true
			break
		}
		total += int64(len(e.Content))
		b.Entries = append(b.Entries, e)
		pending[p] = s
	}
	a.pending[b.ID] = pending
	return b, nil
}

func (a *fakeAgent) Ack(_ context.Context, batch uint64, except []string) error {
	a.files.Lock()
	defer a.files.Unlock()
	for p, s := range a.pending[batch] {
		if slices.Contains(except, p) {
			continue
		}
		if s == (snapshot{}) && !exists(filepath.Join(a.space, p)) {
			for q := range a.acked {
				if q == p || len(q) > len(p) && q[:len(p)+1] == p+"/" {
					delete(a.acked, q)
				}
			}
			continue
		}
		a.acked[p] = s
	}
	delete(a.pending, batch)
	return nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func (a *fakeAgent) Apply(_ context.Context, entries []protocol.ApplyEntry) ([]protocol.ApplyResult, error) {
	a.files.Lock()
	defer a.files.Unlock()
	a.mu.Lock()
	err := a.errLocked()
	a.mu.Unlock()
	if err != nil {
		return nil, err
	}
	a.fake.mu.Lock()
	busy := a.fake.busy
	a.fake.mu.Unlock()
	var results []protocol.ApplyResult
	for _, e := range entries {
		r := protocol.ApplyResult{Path: e.Path}
		if e.Own {
			if err := a.putOwn(e); err != nil {
				r.Problem = err.Error()
			}
			results = append(results, r)
			continue
		}
		name := filepath.Join(a.space, e.Path)
		now, err := look(name)
		old, known := a.acked[e.Path]
		if !e.Force && ((err == nil) != known || known && now != old || busy != nil && busy(e.Path) || a.inUse(name)) {
			r.Dirty = true
		} else if err := a.put(name, e); err != nil {
			r.Problem = err.Error()
		}
		results = append(results, r)
	}
	return results, nil
}

func (a *fakeAgent) put(name string, e protocol.ApplyEntry) error {
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return err
	}
	delete(a.acked, e.Path)
	if e.Delete {
		for d := path.Dir(e.Path); d != "." && !a.inUse(filepath.Join(a.space, d)) && os.Remove(filepath.Join(a.space, d)) == nil; d = path.Dir(d) {
			delete(a.acked, d)
		}
		return nil
	}
	var made []string
	for d := path.Dir(e.Path); d != "."; d = path.Dir(d) {
		made = append(made, d)
	}
	slices.SortFunc(made, func(x, y string) int { return cmp.Compare(len(x), len(y)) })
	for _, d := range made {
		if err := makeDir(filepath.Join(a.space, d)); err != nil {
			return err
		}
		a.acked[d] = snapshot{dir: true}
	}
	s := snapshot{mode: e.Mode, content: string(e.Content)}
	a.acked[e.Path] = s
	if e.Mode == space.Symlink {
		return os.Symlink(s.content, name)
	}
	perm := os.FileMode(0o666)
	if e.Mode == space.Executable {
		perm = 0o777
	}
	return os.WriteFile(name, e.Content, perm)
}

// putOwn makes a change that the next Collect reports.
func (a *fakeAgent) putOwn(e protocol.ApplyEntry) error {
	name := filepath.Join(a.space, e.Path)
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) || e.Delete {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	if e.Mode == space.Symlink {
		return os.Symlink(string(e.Content), name)
	}
	perm := os.FileMode(0o666)
	if e.Mode == space.Executable {
		perm = 0o777
	}
	return os.WriteFile(name, e.Content, perm)
}

// inUse reports whether a command's shell works in the directory name, or has the file name open
// for writing. It returns false on systems without /proc.
func (a *fakeAgent) inUse(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for u := range a.runs {
		proc := fmt.Sprintf("/proc/%d/", u.cmd.Process.Pid)
		if at, err := os.Readlink(proc + "cwd"); err == nil && at == name {
			return true
		}
		fds, _ := filepath.Glob(proc + "fd/*")
		for _, fd := range fds {
			st, err := os.Lstat(fd) // the mode of the link shows how the file was opened
			if at, err2 := os.Readlink(fd); err == nil && err2 == nil && at == name && st.Mode()&0o200 != 0 {
				return true
			}
		}
	}
	return false
}
