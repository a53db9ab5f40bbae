package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/pending"
	"satchel/sandbox/protocol"
)

// restore puts the user's pending files into a new sandbox, as changes that the next
// collection sees again. A newer file of the space keeps its path. After an error the sandbox
// is useless.
func (b *instance) restore(ctx context.Context) error {
	o := &b.pool.o
	if o.Pending == nil {
		return nil
	}
	files, err := o.Pending.Load(ctx, b.key.user, b.key.space)
	if err != nil {
		o.Logger.Error("what is held for a user cannot be read", "space", b.key.space, "user", b.key.user, "err", err)
		b.notices = append(b.notices, "Files that could not be committed were kept for you earlier, and the server cannot read them now. "+
			"They are not in the sandbox. The server's operator finds the reason in its log.")
		return nil
	}
	if len(files) == 0 {
		return nil
	}
	back, err := b.plan(ctx, files)
	if err != nil {
		return err
	}
	entries := make([]protocol.ApplyEntry, 0, len(back.files))
	for _, f := range back.files {
		entries = append(entries, protocol.ApplyEntry{Path: f.Path, Mode: f.Mode, Content: f.Content, Own: true})
	}
	results, err := b.agent.Apply(ctx, entries)
	if err != nil {
		return err
	}
	var put []pending.File
	for i, f := range back.files {
		from, moved := back.moved[f.Path]
		h := pendingFileOf(f)
		switch why := problemOf(results[i]); {
		case why == "":
			b.pending[f.Path] = h
			if moved {
				put = append(put, f)
				back.drop = append(back.drop, from)
				b.notices = append(b.notices, fmt.Sprintf("%s has changed in the space meanwhile; your unsaved version is now in %s.", shown(from), shown(f.Path)))
			}
		case moved:
			f.Path = from
			fallthrough
		default:
			h.outside, h.unkept = true, why
			b.pending[f.Path] = h
		}
	}
	b.notices = append(b.notices, back.notes...)
	if n := len(b.notices) - maxNotices; n > 0 {
		b.notices = append(b.notices[:maxNotices], fmt.Sprintf("And %s more that could not be saved.", count(n, "file")))
	}
	b.export(ctx, put, back.drop)
	b.show()
	return nil
}

// problemOf returns why an agent did not apply an entry, or "" if it did.
func problemOf(r protocol.ApplyResult) string {
	if r.Dirty && r.Problem == "" {
		return "something else is in its place"
	}
	return strings.TrimSuffix(Clean([]byte(r.Problem)), ".")
}

// returning says what happens to the pending files when a sandbox starts.
type returning struct {
	files []pending.File
	moved map[string]string // new path → original path
	drop  []string
	notes []string
}

// plan decides where each pending file goes.
func (b *instance) plan(ctx context.Context, files []pending.File) (returning, error) {
	back := returning{moved: map[string]string{}}
	taken := make(map[string]bool, len(files))
	for _, f := range files {
		taken[f.Path] = true
	}
	r, err := b.view.reader(ctx, len(files))
	if err != nil {
		return back, err
	}
	for _, f := range files {
		if f.Lost != "" {
			back.drop = append(back.drop, f.Path)
			back.notes = append(back.notes, fmt.Sprintf("%s could not be committed, and was lost with its sandbox: %s.", shown(f.Path), f.Lost))
			continue
		}
		if !possible(f.Path) {
			b.pool.o.Logger.Error("a held file has a path that no file system can have", "space", b.key.space, "path", f.Path)
			continue
		}
		p, err := space.ParsePath(f.Path)
		if err != nil { // the path is invalid in every space
			back.files = append(back.files, f)
			continue
		}
		now, free, err := at(ctx, r, p)
		switch {
		case fault.CodeOf(err) == fault.Damaged: // the space's version cannot be read
			back.files = append(back.files, f)
			continue
		case err != nil:
			return back, err
		case now.exists() && now == (file{blobOf(f.Content), f.Mode}) && !b.view.lacks(p):
			back.drop = append(back.drop, f.Path) // somebody has committed it
			continue
		case !free || now != (file{f.Base, f.BaseMode}):
			from := f.Path
			if f.Path, err = beside(ctx, r, p, b.view.seed, taken); err != nil {
				return back, err
			}
			f.Base, f.BaseMode = "", 0
			taken[f.Path] = true
			back.moved[f.Path] = from
		}
		back.files = append(back.files, f)
	}
	return back, nil
}

// at returns the file at a path of the view. free is false if the view has a directory
// there, or a file where the path needs directories.
func at(ctx context.Context, r *reader, p space.Path) (now file, free bool, err error) {
	if now, err = r.get(ctx, p); err != nil || now.exists() {
		return now, err == nil, err
	}
	above, err := r.filesAbove(ctx, p)
	if err != nil || len(above) > 0 {
		return file{}, false, err
	}
	under, err := r.under(ctx, p, false)
	return file{}, err == nil && len(under) == 0, err
}

// maxBeside limits how many names the function beside tries.
const maxBeside = 1000

// beside returns a free path for a copy of p, because the commit has another file there.
func beside(ctx context.Context, r *reader, p space.Path, commit space.CommitID, taken map[string]bool) (string, error) {
	above, err := r.filesAbove(ctx, p)
	if err != nil {
		return "", err
	}
	// If a file is in place of one of p's directories, that directory gets the new name.
	rest := ""
	if len(above) > 0 {
		p, rest = above[0], string(p[len(above[0]):])
	}
	dir, name := path.Split(string(p))
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if stem == "" || len(ext) > 32 { // ".bashrc" has no extension
		stem, ext = name, ""
	}
	for n := 1; n <= maxBeside; n++ {
		mark := space.ConflictMark + commit.Short()
		if n > 1 {
			mark += fmt.Sprintf("-%d", n)
		}
		q := dir + cutName(stem, space.MaxSegmentBytes-len(mark)-len(ext)) + mark + ext + rest
		if taken[q] {
			continue
		}
		// No file of a space can have an invalid path.
		if valid, err := space.ParsePath(q); err == nil {
			now, free, err := at(ctx, r, valid)
			if err != nil {
				return "", err
			}
			if now.exists() || !free {
				continue
			}
		}
		return q, nil
	}
	return "", errors.New("no name is free for a copy of a held file")
}

// cutName shortens a name to at most n bytes, between two characters.
func cutName(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// DropPending drops a user's pending files at and under a path. In a running sandbox it
// restores the space's version of the path. It returns the number of dropped files, or a
// fault.NotFound if there are none.
func (p *Pool) DropPending(ctx context.Context, u space.UserID, id space.SpaceID, path string) (int, error) {
	if p.o.Pending == nil {
		return 0, nothingPending(path)
	}
	path = strings.TrimSuffix(path, "/")
	n, err := p.forgetInside(ctx, key{u, id}, path)
	if err != nil {
		return n, err
	}
	m, err := p.o.Pending.Drop(ctx, u, id, path)
	if err != nil {
		return n, err
	}
	n += m
	// A sandbox that started meanwhile may have the file.
	m, err = p.forgetInside(ctx, key{u, id}, path)
	if n += m; n == 0 && err == nil {
		err = nothingPending(path)
	}
	return n, err
}

func nothingPending(path string) error {
	return fault.New(fault.NotFound, "There is no unsaved file at %s.", shown(path))
}

// forgetInside does the work of DropPending in the key's sandbox, if one runs or starts.
func (p *Pool) forgetInside(ctx context.Context, k key, path string) (int, error) {
	for {
		var wait <-chan struct{}
		p.mu.Lock()
		if b, s := p.instances[k], p.starts[k]; b != nil && b.state == live {
			b.refs++
			p.mu.Unlock()
			defer b.release()
			return b.dropPending(ctx, path)
		} else if b != nil {
			wait = b.settled
		} else if s != nil && !s.queued {
			wait = s.ready
		}
		p.mu.Unlock()
		if wait == nil {
			return 0, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, canceled(ctx)
		}
	}
}

func (b *instance) dropPending(ctx context.Context, top string) (int, error) {
	if err := b.tree.lock(ctx); err != nil {
		return 0, canceled(ctx)
	}
	defer b.tree.unlock()
	defer b.show()
	b.pool.mu.Lock()
	meta, wrote := b.last, b.wrote
	b.pool.mu.Unlock()
	if wrote { // the collection drops files that were fixed or deleted since
		var s saved
		if b.collect(ctx, meta, &s); s.agent {
			return 0, s.err
		}
	}
	var entries []protocol.ApplyEntry
	var drop []string
	for p, h := range b.pending {
		if p != top && !strings.HasPrefix(p, top+"/") {
			continue
		}
		if h.outside {
			drop = append(drop, p)
			continue
		}
		e, err := b.asInSpace(ctx, p)
		if err != nil {
			return 0, err
		}
		entries = append(entries, e)
	}
	// Deeper paths come first, so that directories can be removed.
	slices.SortFunc(entries, func(x, y protocol.ApplyEntry) int { return strings.Compare(y.Path, x.Path) })
	results, err := b.agent.Apply(ctx, entries)
	if err != nil {
		return 0, err
	}
	for _, r := range results {
		if why := problemOf(r); why != "" {
			err = fault.New(fault.Unavailable, "%s could not be taken out of the sandbox: %s.", shown(r.Path), why)
			continue
		}
		drop = append(drop, r.Path)
	}
	b.export(ctx, nil, drop)
	for _, p := range drop {
		delete(b.retry, p)
	}
	return len(drop), err
}

// asInSpace returns the entry that restores the space's version of a path.
func (b *instance) asInSpace(ctx context.Context, p string) (protocol.ApplyEntry, error) {
	valid, err := space.ParsePath(p)
	if err != nil {
		return protocol.ApplyEntry{Path: p, Delete: true, Own: true}, nil
	}
	has, err := b.view.get(ctx, valid)
	if err != nil || !has.exists() {
		return protocol.ApplyEntry{Path: p, Delete: true, Force: true}, err
	}
	if b.view.lacks(valid) {
		return protocol.ApplyEntry{Path: p, Delete: true, Force: true}, nil
	}
	content, err := b.view.seeder.ReadBlob(ctx, b.key.space, has.blob)
	return protocol.ApplyEntry{Path: p, Mode: has.mode, Content: content, Force: true}, err
}
