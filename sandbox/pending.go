package sandbox

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/pending"
	"satchel/sandbox/protocol"
)

// pendingFile is an instance's record of a file that could not be committed and is kept for
// its user. Guarded by instance.tree.
type pendingFile struct {
	sum  [sha256.Size]byte
	mode space.Mode
	base file
	why  string
	code fault.Code
	lost string
	// unkept says why Options.Pending did not store the file. Each collection that reports the
	// file tries again.
	unkept string
	// acked means that the agent reports the path only when it changes; otherwise each
	// collection reports it.
	acked bool
	// outside means that the file could not be restored in the sandbox.
	outside bool
	seen    uint64 // the last collection that reported the file
}

func pendingFileOf(f pending.File) pendingFile {
	return pendingFile{
		sum: sha256.Sum256(f.Content), mode: f.Mode, base: file{f.Base, f.BaseMode},
		why: f.Why, code: f.Code, lost: f.Lost,
	}
}

// same reports whether Options.Pending would store the same for h and o.
func (h pendingFile) same(o pendingFile) bool {
	return h.sum == o.sum && h.mode == o.mode && h.base == o.base && h.why == o.why && h.lost == o.lost
}

// keep adds a rejected entry to the draft's pending files.
func (d *draft) keep(e protocol.Entry, base file, err error) {
	if !possible(e.Path) {
		return
	}
	d.pending = append(d.pending, pending.File{
		Path: e.Path, Mode: min(e.Mode, space.Symlink), Content: e.Content, Base: base.blob, BaseMode: base.mode,
		Why: reason(err), Code: fault.CodeOf(err), Lost: firstChars(Clean([]byte(e.Problem)), 200),
	})
}

// possible reports whether a file system can have a file at a path below the space. Other
// paths cannot come from an honest agent, and are ignored.
func possible(p string) bool {
	if len(p) > maxHeldPath || strings.IndexByte(p, 0) >= 0 {
		return false
	}
	for seg := range strings.SplitSeq(p, "/") {
		if seg == "" || seg == "." || seg == ".." || len(seg) > space.MaxSegmentBytes {
			return false
		}
	}
	return true
}

// Limits of an instance's pending files, because a command can create many files with bad
// names.
const (
	maxHeldPath  = 4096 // bytes
	maxHeldFiles = 2000 // in the instance; Options.Pending has its own limits
)

// keepChange is like keep, for a change that the Committer rejected. It ignores a
// deletion, because the space has the file.
func (d *draft) keepChange(c space.Change, why string, err error) {
	if c.Op != space.Write {
		return
	}
	d.pending = append(d.pending, pending.File{
		Path: c.Path, Mode: c.Mode, Content: c.Content, Base: c.Base, BaseMode: c.BaseMode,
		Why: why, Code: fault.CodeOf(err),
	})
}

// keepBack updates Options.Pending after a batch: it stores the draft's pending files and
// drops those that the batch resolves. Both changes are durable when keepBack returns, so the
// caller can then acknowledge the batch. The returned paths were not stored: the caller must not
// acknowledge them, so that the agent reports them again.
func (b *instance) keepBack(ctx context.Context, batch protocol.Batch, d *draft) []string {
	if b.pool.o.Pending == nil || len(d.pending) == 0 && len(b.pending) == 0 {
		return nil
	}
	var put []pending.File
	names := make(map[string]bool, len(d.pending))
	for _, f := range d.pending {
		next := pendingFileOf(f)
		old, known := b.pending[f.Path]
		if known && old.unkept == "" && old.same(next) {
			next = old
			next.outside = false
		} else if known || len(b.pending) < maxHeldFiles {
			put = append(put, f)
		} else {
			continue // too many files: the answer names the path, but the file is not kept
		}
		next.acked, next.seen = false, b.collections
		b.pending[f.Path] = next
		names[f.Path] = true
	}
	drop := b.resolved(d.reported, names)
	again := b.export(ctx, put, drop)
	for _, e := range batch.Entries {
		if h, ok := b.pending[e.Path]; ok && !e.Busy {
			h.acked = true // unacked undoes this for the paths that the agent must report again
			b.pending[e.Path] = h
		}
	}
	return again
}

// resolved lists the pending paths that a batch reports as changed.
func (b *instance) resolved(reported reports, still map[string]bool) []string {
	if len(b.pending) == len(still) {
		return nil // still has every pending path
	}
	var list []string
	for p, h := range b.pending {
		if !still[p] && !h.outside && reported.changed(p) {
			list = append(list, p)
		}
	}
	return list
}

// unacked records that the paths in except are not acknowledged.
func (b *instance) unacked(except []string) {
	for _, p := range except {
		if h, ok := b.pending[p]; ok {
			h.acked = false
			b.pending[p] = h
		}
	}
}

// settle is called after a complete collection. It drops the pending files that the agent would
// have reported again if they still existed.
func (b *instance) settle(ctx context.Context) {
	var drop []string
	for p, h := range b.pending {
		if !h.acked && !h.outside && h.seen != b.collections {
			drop = append(drop, p)
		}
	}
	if len(drop) > 0 {
		b.export(ctx, nil, drop)
	}
}

// export updates Options.Pending, records what it does not store, and returns the paths of
// put that were not stored.
func (b *instance) export(ctx context.Context, put []pending.File, drop []string) []string {
	for _, p := range drop {
		delete(b.pending, p)
		delete(b.refused, p)
		if at, ok := b.refusedAt(p); ok && !b.hasUnder(at) {
			delete(b.refused, at) // answers named the directory in place of its files
		}
	}
	if len(put)+len(drop) == 0 {
		return nil
	}
	began := time.Now()
	unkept, err := b.pool.o.Pending.Save(ctx, b.key.user, b.key.space, put, drop)
	b.pool.o.Metrics.pending(time.Since(began), len(put)+len(drop), err)
	if err != nil {
		b.pool.o.Logger.Error("what could not be committed could not be kept either", "space", b.key.space, "files", len(put), "err", err)
		unkept = unkept[:0]
		for _, f := range put {
			unkept = append(unkept, pending.NotStored{Path: f.Path, Why: "the server could not write it to its disk"})
		}
	}
	var again []string
	for _, u := range unkept {
		h := b.pending[u.Path]
		h.unkept = u.Why
		if u.Older {
			h.unkept += "; an older version of it is kept"
		}
		b.pending[u.Path] = h
		again = append(again, u.Path)
	}
	return again
}

// show publishes the list of pending files, for every answer.
func (b *instance) show() {
	if b.pool.o.Pending == nil {
		return
	}
	if len(b.pending)+len(b.refused) == 0 {
		b.shown.Store(nil)
		return
	}
	list := make([]space.Rejection, 0, len(b.pending))
	// In each text, the loss of the file comes first, because a long text may be cut. The keys of
	// lost and gone are rejected paths, or directories above them.
	lost, gone := map[string]string{}, map[string]bool{}
	for _, p := range slices.Sorted(maps.Keys(b.pending)) {
		h := b.pending[p]
		at, refused := b.refusedAt(p)
		if !refused {
			at = p
			list = append(list, space.Rejection{Path: p, Why: h.why, Err: fault.New(h.code, "%s", h.why)})
		}
		switch {
		case lost[at] != "":
		case h.outside:
			lost[at] = "It is kept on the server and could not be put back into the sandbox: " + h.unkept
		case h.lost != "":
			lost[at], gone[at] = "It will be lost when the sandbox stops", true
		case h.unkept != "":
			lost[at], gone[at] = "It will be lost when the sandbox stops: "+h.unkept, true
		}
	}
	for _, r := range b.refused {
		list = append(list, r)
	}
	slices.SortFunc(list, func(x, y space.Rejection) int { return strings.Compare(x.Path, y.Path) })
	if n := len(list) - maxRefused; n > 0 {
		list = list[:maxRefused]
		list[maxRefused-1].Why += fmt.Sprintf(" And %s more.", count(n, "path"))
	}
	for i := range list {
		if s := lost[list[i].Path]; s != "" {
			list[i].Why, list[i].Lost = s+". "+list[i].Why, gone[list[i].Path]
		}
	}
	b.shown.Store(&list)
}

// stillPending names the pending files in a sentence, because an error has no list of them.
func (b *instance) stillPending() string {
	list := b.shown.Load()
	if list == nil {
		return ""
	}
	var names []string
	for _, r := range *list {
		if len(names) == 5 {
			names = append(names, "…")
			break
		}
		names = append(names, shown(r.Path))
	}
	return fmt.Sprintf("Not committed, but kept, as earlier answers said: %s. ", strings.Join(names, ", "))
}

func (b *instance) hasUnder(dir string) bool {
	for p := range b.pending {
		if strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	return false
}

// refusedAt returns the refused path that covers p: p itself, or a directory above p.
func (b *instance) refusedAt(p string) (string, bool) {
	for ; p != "." && p != "/"; p = path.Dir(p) {
		if _, ok := b.refused[p]; ok {
			return p, true
		}
	}
	return "", false
}

// uncommitted reports whether a path, or a file in place of a directory above it, could not be
// committed. The caller must not update such a path: the agent would let the update replace the
// file, because the host has acknowledged the file.
func (b *instance) uncommitted(p string) bool {
	if len(b.pending)+len(b.refused) == 0 {
		return false
	}
	if _, ok := b.refusedAt(p); ok {
		return true
	}
	for ; p != "."; p = path.Dir(p) {
		if h, ok := b.pending[p]; ok && !h.outside {
			return true
		}
	}
	return false
}
