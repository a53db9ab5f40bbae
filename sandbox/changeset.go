package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/pending"
	"satchel/sandbox/protocol"
)

// draft is a change set that is made from one batch of an agent.
type draft struct {
	changes  map[space.Path]space.Change
	writes   map[space.Path]file // the sandbox's file for each Write in changes
	refused  []space.Rejection   // paths that the host refuses until they change again
	busy     []string            // paths that a later collection reports again
	kept     map[string]bool     // busy and refused paths, which exist although changes lacks them
	pending  []pending.File      // the files of refused, and those that the Committer refuses
	reported reports             // the batch's entries; set if a path was refused before
}

// reports are the entries of a batch by path.
type reports map[string]protocol.Entry

func reportsOf(b protocol.Batch) reports {
	r := make(reports, len(b.Entries))
	for _, e := range b.Entries {
		r[e.Path] = e
	}
	return r
}

// changed reports whether a path was changed or deleted.
func (r reports) changed(p string) bool {
	if e, ok := r[p]; ok {
		return !e.Busy
	}
	for dir := path.Dir(p); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if e, ok := r[dir]; ok && (e.Deleted || !e.Dir && !e.Busy) {
			return true
		}
	}
	return false
}

func (d *draft) changeSet() space.ChangeSet {
	cs := space.ChangeSet{Policy: space.KeepBoth, Changes: make([]space.Change, 0, len(d.changes))}
	for _, c := range d.changes {
		cs.Changes = append(cs.Changes, c)
	}
	slices.SortFunc(cs.Changes, func(a, b space.Change) int { return strings.Compare(a.Path, b.Path) })
	return cs
}

func (d *draft) refuse(p, why string, err error) {
	d.refused = append(d.refused, space.Rejection{Path: p, Why: why, Err: err})
	d.kept[p] = true
}

func (d *draft) delete(v *view, p space.Path, base file) {
	if _, ok := d.changes[p]; !ok && base.exists() && !d.kept[string(p)] && !v.lacks(p) {
		d.changes[p] = space.Change{Path: string(p), Op: space.Delete, Base: base.blob, BaseMode: base.mode}
	}
}

// makeDraft validates a batch, which an attacker may have made, and compares it with the view of
// the sandbox's files. An error comes from the Checkouts, or means that the agent exceeded its
// limits.
func makeDraft(ctx context.Context, v *view, b protocol.Batch, limits protocol.CollectLimits, maxFile int64) (*draft, error) {
	if err := checkBatch(b, limits); err != nil {
		return nil, err
	}
	d := &draft{changes: map[space.Path]space.Change{}, writes: map[space.Path]file{}, kept: map[string]bool{}}
	r, err := v.reader(ctx, len(b.Entries))
	if err != nil {
		return nil, err
	}
	git := map[string]int{} // the number of refused files under each .git directory
	// The writes come first, so that a deleted directory does not delete new files in it.
	for _, e := range b.Entries {
		if e.Busy {
			d.busy = append(d.busy, e.Path)
			d.kept[e.Path] = true
			continue
		}
		if e.Deleted || e.Dir && e.Problem == "" {
			continue
		}
		if e.Problem != "" && e.Size > limits.FileSize {
			// The agent's text names the limit of pending files, which is larger than maxFile.
			e.Problem = tooLarge(e.Size, maxFile)
		}
		p, err := space.ParsePath(e.Path)
		switch {
		case space.RuleOf(err) == space.RuleGit:
			git[gitDir(e.Path)]++
			d.keep(e, file{}, err)
			continue
		case err != nil:
			d.refuse(e.Path, reason(err), err)
			d.keep(e, file{}, err)
			continue
		}
		if err := d.write(ctx, r, p, e, maxFile); err != nil {
			return nil, err
		}
	}
	for _, e := range b.Entries {
		if e.Busy || e.Problem != "" || !e.Deleted && !e.Dir {
			continue
		}
		p, err := space.ParsePath(e.Path)
		if err != nil {
			continue // no commit can have a file there
		}
		base, err := r.get(ctx, p)
		if fault.CodeOf(err) == fault.Damaged {
			continue // a directory above p is damaged, and stays unchanged
		}
		if err != nil {
			return nil, err
		}
		d.delete(r.view, p, base)
		if base.exists() || e.Dir && !e.Opaque {
			continue
		}
		if err := d.deleteUnder(ctx, r, p, !e.Deleted); err != nil {
			return nil, err
		}
	}
	for dir, n := range git {
		err := fault.New(fault.Invalid, "%s under it cannot be saved: the name belongs to git.", count(n, "file"))
		d.refuse(dir, err.Public, err)
	}
	slices.SortFunc(d.refused, func(a, b space.Rejection) int { return strings.Compare(a.Path, b.Path) })
	return d, nil
}

func checkBatch(b protocol.Batch, l protocol.CollectLimits) error {
	if len(b.Entries) > l.Entries {
		return fmt.Errorf("%w: %d entries, and %d were allowed", protocol.ErrProtocol, len(b.Entries), l.Entries)
	}
	var total int64
	for _, e := range b.Entries {
		n := int64(len(e.Content))
		if total += n; n > l.FileSize || total > l.Total {
			return fmt.Errorf("%w: more content than was allowed", protocol.ErrProtocol)
		}
	}
	return nil
}

// refusal returns why a file or link cannot be committed; the Committer has further reasons.
// No reason names the path, because lists show each reason next to its path.
func refusal(p space.Path, e protocol.Entry, maxFile int64) error {
	switch {
	case e.Problem != "":
		return fault.New(fault.Invalid, "It was not saved: %s.", strings.TrimSuffix(Clean([]byte(e.Problem)), "."))
	case e.Mode > space.Symlink:
		return fault.New(fault.Invalid, "It was not saved: it is neither a file nor a link.")
	case int64(len(e.Content)) > maxFile:
		return fault.New(fault.TooLarge, "It was not saved: %s.", tooLarge(int64(len(e.Content)), maxFile))
	case e.Mode == space.Symlink:
		return space.CheckSymlink(p, string(e.Content))
	}
	return nil
}

// reason returns why a path was refused, for a list that names the path.
func reason(err error) string {
	if why := pathProblem(err); why != "" {
		return fmt.Sprintf("It was not saved: %s.", why)
	}
	return fault.PublicOf(err)
}

// pathProblem returns which rule for paths is broken, or "" for any other error.
func pathProblem(err error) string {
	var e *space.PathError
	if errors.As(err, &e) {
		return e.Why
	}
	return ""
}

// tooLarge returns a clause about a file that is too large to be saved, with its size and the
// limit.
func tooLarge(size, most int64) string {
	return fmt.Sprintf("it has %s, and a file may have %s", bytesize.Text(size), bytesize.Text(most))
}

// write adds a file or link of the sandbox to the draft.
func (d *draft) write(ctx context.Context, r *reader, p space.Path, e protocol.Entry, maxFile int64) error {
	base, err := r.get(ctx, p)
	if err != nil && fault.CodeOf(err) != fault.Damaged {
		return err
	}
	if err == nil {
		err = refusal(p, e, maxFile)
	}
	if err != nil {
		d.refuse(e.Path, reason(err), err)
		d.keep(e, base, err)
		return nil
	}
	// The view may have a directory at the path, or a file above it.
	if !base.exists() {
		if err := d.deleteUnder(ctx, r, p, false); err != nil {
			return err
		}
		above, err := r.filesAbove(ctx, p)
		if err != nil {
			return err
		}
		for _, q := range above {
			d.delete(r.view, q, r.ancestors[q])
		}
	}
	now := file{blobOf(e.Content), e.Mode}
	if now == base && !r.lacks(p) {
		return nil
	}
	d.writes[p] = now
	d.changes[p] = space.Change{
		Path: string(p), Op: space.Write, Mode: e.Mode, Content: e.Content,
		Base: base.blob, BaseMode: base.mode,
	}
	return nil
}

// deleteUnder adds a deletion for each of the view's files below p that this batch does not write.
// An opaque directory (in overlayfs, one that hides the lower layer) hides only the files of the
// checkout from which the sandbox started. Files that were committed or applied later are in the
// same layer as the directory, and the agent reports each deletion of such a file.
func (d *draft) deleteUnder(ctx context.Context, r *reader, p space.Path, opaque bool) error {
	files, err := r.under(ctx, p, opaque)
	if err != nil {
		return err
	}
	for q, f := range files {
		d.delete(r.view, q, f)
	}
	return nil
}

// gitDir returns p up to the first segment that git reserves, such as .git.
func gitDir(p string) string {
	segs := strings.Split(p, "/")
	for i, s := range segs {
		if space.FoldsToGit(s) {
			return path.Join(segs[:i+1]...)
		}
	}
	return p
}

// shown shortens and quotes a path for a sentence, because an attacker may have chosen the path.
func shown(p string) string {
	if len(p) > 120 {
		p = p[:60] + "…" + p[len(p)-60:]
	}
	return fmt.Sprintf("%q", p)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
