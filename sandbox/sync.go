package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// errTooMuch means that updating the sandbox to head would take too long.
var errTooMuch = errors.New("too much changed in the space")

// syncToHead updates the sandbox's files to head, except those with local changes, which stay until
// they are committed. notes names files that cannot be updated. If bounded is set and the update
// exceeds the limits in Options, it does nothing and returns errTooMuch.
func (b *instance) syncToHead(ctx context.Context, bounded bool) (applied []space.FileChange, notes []string, err error) {
	head, err := b.view.seeder.Head(ctx, b.key.space)
	if err != nil {
		return nil, nil, err
	}
	if head == b.head && len(b.behind) == 0 {
		return nil, nil, nil
	}
	wanted, err := b.wanted(ctx, head)
	if err != nil {
		return nil, nil, err
	}
	if bounded {
		var bytes int64
		for _, c := range wanted {
			bytes += c.Size
		}
		if len(wanted) > b.pool.o.MaxApplyFiles || bytes > b.pool.o.MaxApplyBytes {
			return nil, nil, errTooMuch
		}
	}
	for _, c := range wanted {
		b.behind[c.Path] = struct{}{}
	}
	b.head = head
	inside := b.rejectPaths(wanted)
	defer func() { notes = append(inside.notes(), notes...) }()
	wanted, notes = b.smallEnough(inside.list)
	wanted = slices.DeleteFunc(wanted, func(c space.FileChange) bool { return b.uncommitted(string(c.Path)) })
	for len(wanted) > 0 {
		n, entries, damaged, err := b.applyEntries(ctx, wanted, inside)
		if err != nil {
			return applied, notes, err
		}
		for _, p := range damaged {
			notes = b.behindFor(notes, p, "it is damaged on the server's disk. "+strings.TrimSuffix(space.DamagedAdvice, "."))
		}
		results, err := b.agent.Apply(ctx, entries)
		if err != nil {
			return applied, notes, err
		}
		left := map[string]protocol.ApplyResult{}
		for _, r := range results {
			if r.Dirty || r.Problem != "" {
				left[r.Path] = r
			}
		}
		for _, c := range wanted[:n] {
			r, ok := left[string(c.Path)]
			if slices.Contains(damaged, c.Path) {
				continue
			}
			if !ok {
				delete(b.behind, c.Path)
				delete(b.failed, c.Path)
				b.view.set(c.Path, file{c.New, c.NewMode})
				applied = append(applied, c)
			} else if !r.Dirty {
				notes = b.behindFor(notes, c.Path, problemOf(r))
			}
		}
		wanted = wanted[n:]
	}
	return applied, notes, nil
}

// maxOutside is how many rejected files one note names.
const maxOutside = 3

// rejectedPaths collects files in others' commits that no sandbox can have: those with
// invalid paths, and links that lead out of the space.
type rejectedPaths struct {
	instance *instance
	list     []space.FileChange // files that a sandbox can have
	names    []string
	reported int
}

// rejectPaths splits a list into files that a sandbox can have and the rest.
func (b *instance) rejectPaths(list []space.FileChange) *rejectedPaths {
	o := &rejectedPaths{instance: b}
	for _, c := range list {
		_, err := space.ParsePath(string(c.Path))
		if err == nil {
			o.list = append(o.list, c)
			continue
		}
		delete(b.behind, c.Path)
		if c.Status != space.Deleted {
			o.add(c.Path, err)
		}
	}
	return o
}

// add reports a path once, and again only after the path has changed.
func (o *rejectedPaths) add(p space.Path, err error) {
	if o.instance.outside[p] {
		return
	}
	if len(o.instance.outside) < maxRefused {
		o.instance.outside[p] = true
	}
	if o.reported++; o.reported <= maxOutside {
		o.names = append(o.names, shown(string(p))+" ("+pathProblem(err)+")")
	}
}

func (o *rejectedPaths) notes() []string {
	if o.reported == 0 {
		return nil
	}
	names := o.names
	if more := o.reported - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return []string{fmt.Sprintf("Some of the repository's files cannot be in a sandbox: %s. Only a person can fix this, in the repository.", strings.Join(names, ", "))}
}

// smallEnough leaves out files that are too large for a running sandbox. Their contents would be
// in the memory of this process and of the sandbox.
func (b *instance) smallEnough(list []space.FileChange) (small []space.FileChange, notes []string) {
	for _, c := range list {
		if c.New == "" || c.Size <= b.pool.o.MaxApplyBytes {
			small = append(small, c)
			continue
		}
		why := fmt.Sprintf("it has %s, and a running sandbox accepts %s", bytesize.Text(c.Size), bytesize.Text(b.pool.o.MaxApplyBytes))
		notes = b.behindFor(notes, c.Path, why)
	}
	return small, notes
}

// behindFor adds a note, once, that says why a file in the sandbox stays older than head.
func (b *instance) behindFor(notes []string, p space.Path, why string) []string {
	if b.failed[p] == why {
		return notes
	}
	b.failed[p] = why
	return append(notes, fmt.Sprintf("The newer version of %s could not be copied into the sandbox: %s.", shown(string(p)), why))
}

// wanted lists the differences between the sandbox and head. Deletions come first, so that a
// file can become a directory.
func (b *instance) wanted(ctx context.Context, head space.CommitID) ([]space.FileChange, error) {
	var list []space.FileChange
	if head != b.head {
		diff, err := b.view.seeder.Diff(ctx, b.key.space, b.head, head)
		if err != nil {
			return nil, err
		}
		list = diff
	}
	listed := make(map[space.Path]bool, len(list))
	for _, c := range list {
		listed[c.Path] = true
	}
	for _, p := range slices.Sorted(maps.Keys(b.behind)) {
		if listed[p] {
			continue
		}
		c, err := b.atHead(ctx, head, p)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	var deletes, writes []space.FileChange
	for _, c := range list {
		has, err := b.view.get(ctx, c.Path)
		if err != nil {
			return nil, err
		}
		switch want := (file{c.New, c.NewMode}); {
		case !want.exists() && !has.exists() || want == has:
			delete(b.behind, c.Path)
		case !want.exists():
			deletes = append(deletes, c)
		default:
			writes = append(writes, c)
		}
	}
	return append(deletes, writes...), nil
}

// atHead returns head's version of a path as a change, with its size.
func (b *instance) atHead(ctx context.Context, head space.CommitID, p space.Path) (space.FileChange, error) {
	_, _, ok, err := b.view.seeder.Blob(ctx, b.key.space, head, p)
	if err != nil || !ok {
		return space.FileChange{Path: p, Status: space.Deleted}, err
	}
	files, err := b.view.seeder.Files(ctx, b.key.space, head, p)
	if err == nil && (len(files) != 1 || files[0].Path != p) {
		err = fmt.Errorf("%d files at the path of one", len(files))
	}
	if err != nil {
		return space.FileChange{}, err
	}
	c := files[0].Added()
	c.Status = space.Modified
	return c, nil
}

// Limits of one call of Apply.
const (
	applyFiles = 500
	applyBytes = 4 << 20
)

// applyEntries reads the contents of the first n files of list, for one call of Apply. The
// caller has checked their sizes. Damaged files stay unchanged in the sandbox.
func (b *instance) applyEntries(ctx context.Context, list []space.FileChange, out *rejectedPaths) (n int, entries []protocol.ApplyEntry, damaged []space.Path, err error) {
	var bytes int
	for ; n < len(list) && n < applyFiles && bytes < applyBytes; n++ {
		e, err := b.applyEntry(ctx, list[n], out)
		if fault.CodeOf(err) == fault.Damaged {
			damaged = append(damaged, list[n].Path)
			continue
		}
		if err != nil {
			return 0, nil, nil, err
		}
		bytes += len(e.Content)
		entries = append(entries, e)
	}
	return n, entries, damaged, nil
}

// applyEntry returns the entry that updates one file to head. For a link that leads out of the
// space, the entry deletes the link, because checkouts leave out such links too.
func (b *instance) applyEntry(ctx context.Context, c space.FileChange, out *rejectedPaths) (protocol.ApplyEntry, error) {
	e := protocol.ApplyEntry{Path: string(c.Path), Delete: c.New == "", Mode: c.NewMode}
	if e.Delete {
		return e, nil
	}
	link := c.NewMode == space.Symlink
	var why error
	if link && c.Size > space.MaxPathBytes {
		why = space.CheckSymlink(c.Path, strings.Repeat("x", space.MaxPathBytes+1))
	} else {
		content, err := b.view.seeder.ReadBlob(ctx, b.key.space, c.New)
		if err != nil {
			return e, err
		}
		if e.Content = content; link {
			why = space.CheckSymlink(c.Path, string(content))
		}
	}
	if why != nil {
		out.add(c.Path, why)
		return protocol.ApplyEntry{Path: e.Path, Delete: true}, nil
	}
	delete(b.outside, c.Path)
	return e, nil
}
