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
	"satchel/sandbox/agent"
	"satchel/sandbox/pending"
)

// pendingFile is what an instance knows of a path that could not be committed and is
// held for its user. Guarded by instance.tree.
type pendingFile struct {
	sum  [sha256.Size]byte
	mode space.Mode
	base file
	why  string
	code fault.Code
	lost string
	// unkept says why Options.Pending does not have it. Each collection that reports
	// it offers it again.
	unkept string
	// acked means that the agent reports the path only when it changes; otherwise each
	// collection reports it.
	acked bool
	// outside means that it could not be put back into the sandbox.
	outside bool
	seen    uint64 // the last collection that reported it
}

func pendingFileOf(f pending.File) pendingFile {
	return pendingFile{
		sum: sha256.Sum256(f.Content), mode: f.Mode, base: file{f.Base, f.BaseMode},
		why: f.Why, code: f.Code, lost: f.Lost,
	}
}

// same reports whether Options.Pending is up to date.
func (h pendingFile) same(o pendingFile) bool {
	return h.sum == o.sum && h.mode == o.mode && h.base == o.base && h.why == o.why && h.lost == o.lost
}

// hold notes what of a draft is to be held beside what is refused in it.
func (d *draft) keep(e agent.Entry, base file, err error) {
	if !possible(e.Path) {
		return
	}
	d.pending = append(d.pending, pending.File{
		Path: e.Path, Mode: min(e.Mode, space.Symlink), Content: e.Content, Base: base.blob, BaseMode: base.mode,
		Why: reason(err), Code: fault.CodeOf(err), Lost: firstChars(Clean([]byte(e.Problem)), 200),
	})
}

// possible reports whether a file system can have a file at a path below the
// space. Any other path is a lie of the agent's, and is ignored.
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

// Bounds of what an instance holds, so that a command that makes many files with bad
// names costs the server no more than that.
const (
	maxHeldPath  = 4096 // bytes
	maxHeldFiles = 2000 // that are known of; Options.Pending has bounds of its own
)

// keepChange is hold for what the Committer did not take. A delete needs no
// keeping: what it deletes is in the space.
func (d *draft) keepChange(c space.Change, why string, err error) {
	if c.Op != space.Write {
		return
	}
	d.pending = append(d.pending, pending.File{
		Path: c.Path, Mode: c.Mode, Content: c.Content, Base: c.Base, BaseMode: c.BaseMode,
		Why: why, Code: fault.CodeOf(err),
	})
}

// keepBack brings Options.Pending in step with a batch: it keeps what the draft holds
// and forgets what the batch tells to be resolved. That is durable when it
// returns, so the caller acknowledges the batch after it, but for the paths
// that keepBack returns: they are not kept, and are to be told again.
func (b *instance) keepBack(ctx context.Context, batch agent.Batch, d *draft) []string {
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
			continue // it is named as one of many
		}
		next.acked, next.seen = false, b.collections
		b.pending[f.Path] = next
		names[f.Path] = true
	}
	drop := b.resolved(d.reported, names)
	again := b.export(ctx, put, drop)
	for _, e := range batch.Entries {
		if h, ok := b.pending[e.Path]; ok && !e.Busy {
			h.acked = true // unless it is refused its acknowledgement
			b.pending[e.Path] = h
		}
	}
	return again
}

// resolved lists the held paths that a batch tells to be something else now.
func (b *instance) resolved(reported reports, still map[string]bool) []string {
	if len(b.pending) == len(still) {
		return nil // still is part of pending
	}
	var list []string
	for p, h := range b.pending {
		if !still[p] && !h.outside && reported.changed(p) {
			list = append(list, p)
		}
	}
	return list
}

// unacked notes the paths that were refused their acknowledgement.
func (b *instance) unacked(except []string) {
	for _, p := range except {
		if h, ok := b.pending[p]; ok {
			h.acked = false
			b.pending[p] = h
		}
	}
}

// settle forgets, after a whole collection, the held files that are no more and
// of which the agent never had to tell.
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

// export tells Options.Pending, notes what it does not take, and returns the paths
// of put that it does not have.
func (b *instance) export(ctx context.Context, put []pending.File, drop []string) []string {
	for _, p := range drop {
		delete(b.pending, p)
		delete(b.refused, p)
		if at, ok := b.refusedAt(p); ok && !b.hasUnder(at) {
			delete(b.refused, at) // the directory that was named for its files
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

// show publishes what is held, for every answer.
func (b *instance) show() {
	if b.pool.o.Pending == nil {
		return
	}
	if len(b.pending)+len(b.refused) == 0 {
		b.shown.Store(nil)
		return
	}
	list := make([]space.Rejection, 0, len(b.pending))
	// The worst comes first, for a long text may be cut; by what is refused, a
	// path or a directory above it.
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

// stillPending names what is held, for an answer that has no list of it.
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

// refusedAt returns the refusal that names a path: its own, or that of a
// directory above it.
func (b *instance) refusedAt(p string) (string, bool) {
	for ; p != "." && p != "/"; p = path.Dir(p) {
		if _, ok := b.refused[p]; ok {
			return p, true
		}
	}
	return "", false
}

// uncommitted reports whether the sandbox has, at a path or in place of a
// directory above it, what could not be committed. The agent was told that the
// host has seen it, so it would let it be replaced.
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
