package reviews

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// maxWaited bounds with how many contents that waited at a path lines are compared, and
// how many that a person kept there are taken for known.
const maxWaited = 32

// waited is a content that waited at a path, or comes to wait there by a branch of its
// own.
type waited struct {
	blob space.BlobID
	old  space.BlobID // what it took the place of, where it is beside; else empty
	at   int64
}

// waitedAgain finds those of the files that git elsewhere brings in place of what a
// person knows which have, with other changes, what an AI made of that very file and
// nobody confirmed: a branch may be older than what it was made of, and what was undone
// may be brought back.
func (w *stepper) waitedAgain(ctx context.Context, files []change, out map[space.Path]bool) error {
	of, err := w.waitedAt(ctx, files)
	if err != nil {
		return err
	}
	for _, f := range files {
		list := of[f.path]
		if len(list) == 0 {
			continue
		}
		if err := w.breathe(ctx); err != nil {
			return err
		}
		if out[f.path], err = w.hasOf(ctx, f, list); err != nil {
			return err
		}
	}
	return nil
}

// waitedAt lists what waited at the paths of the files and was not confirmed, newest
// first. What a person wrote into it is left out: what they wrote it into is there too.
func (w *stepper) waitedAt(ctx context.Context, files []change) (map[space.Path][]waited, error) {
	all := map[space.Path]map[space.BlobID]int64{}
	add := func(p space.Path, b space.BlobID, tool string, at int64) {
		if b == "" || b == emptyBlob || tool != "" && slices.Contains(w.o.Confirming, tool) {
			return
		}
		if all[p] == nil {
			all[p] = map[space.BlobID]int64{}
		}
		all[p][b] = at
	}
	var ask []string
	for _, f := range files {
		ask = append(ask, string(f.path))
		for k, by := range w.makers.of[f.path] {
			add(f.path, k.blob, by.tool, by.at)
		}
		if x := w.rows[f.path]; x != nil && x.seen && x.now != x.baseline() {
			add(f.path, x.now.blob, x.Tool, x.Changed)
		}
	}
	for from := 0; from < len(ask) && !w.makers.again; from += 100 {
		var rows []makerRow
		part := ask[from:min(from+100, len(ask))]
		if err := w.o.DB.Read(ctx).Where("space_id = ? AND path IN ?", string(w.id), part).Find(&rows).Error; err != nil {
			return nil, fmt.Errorf("find what waited at a path: %w", err)
		}
		for _, x := range rows {
			add(space.Path(x.Path), space.BlobID(x.Blob), x.Tool, x.Changed)
		}
	}
	var contents []change
	for p, of := range all {
		for b := range of {
			contents = append(contents, change{path: p, now: content{blob: b}})
		}
	}
	unseen, err := w.nobodyConfirmed(ctx, contents)
	if err != nil {
		return nil, err
	}
	out := map[space.Path][]waited{}
	for _, f := range contents {
		if b := f.now.blob; unseen[b] {
			out[f.path] = append(out[f.path], waited{blob: b, at: all[f.path][b]})
		}
	}
	for _, f := range files {
		for _, o := range w.besideAt[f.path] {
			if o.step > w.at {
				out[f.path] = append(out[f.path], o.waited)
			}
		}
		slices.SortFunc(out[f.path], func(a, b waited) int {
			return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(a.blob, b.blob))
		})
	}
	return out, nil
}

// hasOf tells whether a file has enough of what an AI made of one of the contents.
func (w *stepper) hasOf(ctx context.Context, f change, list []waited) (bool, error) {
	var kept []decisionRow
	err := w.o.DB.Read(ctx).Where("space_id = ? AND path = ? AND decision = ? AND blob <> ''", string(w.id), string(f.path), string(Kept)).
		Order("decided_at DESC, id DESC").Limit(maxWaited).Find(&kept).Error
	if err != nil {
		return false, fmt.Errorf("find what was kept at a path: %w", err)
	}
	now, err := w.lines(ctx, f.now.blob)
	if err != nil {
		return false, err
	}
	was, err := w.lines(ctx, f.old.blob)
	if err != nil {
		return false, err
	}
	known := lineSet{}
	known.add(was)
	for _, d := range kept {
		l, err := w.lines(ctx, space.BlobID(d.Blob))
		if err != nil {
			return false, err
		}
		known.add(l)
	}
	if len(list) > maxWaited {
		// Those that are too many to be compared ask a person, who then keeps or undoes
		// all of what is there.
		if len(kept) == 0 || list[maxWaited].at > kept[0].DecidedAt {
			return true, nil
		}
		list = list[:maxWaited]
	}
	for _, o := range list {
		made, err := w.lines(ctx, o.blob)
		if err != nil {
			return false, err
		}
		before, base := known, was
		if o.old != "" {
			if base, err = w.lines(ctx, o.old); err != nil {
				return false, err
			}
			before = lineSet{}
			before.add(known)
			before.add(base)
		}
		if len(made) > 0 && shares(made.without(before), now.without(before), base.without(made), base.without(now)) {
			return true, nil
		}
	}
	return false, nil
}

// shares tells whether a file has half of the lines that an AI added, or half of its own
// new ones from there; or lacks half of those that the AI took away, where that is all
// that it did.
func shares(added, mine, removed, lacks lineSet) bool {
	if len(added) == 0 {
		both := removed.common(lacks)
		return both > 0 && 2*both >= len(removed)
	}
	// What is shorter than a few letters says nothing, unless there is nothing else.
	if long := added.long(); len(long) > 0 {
		added, mine = long, mine.long()
	}
	both := added.common(mine)
	return both > 0 && 2*both >= min(len(added), len(mine))
}

// lineSet are the lines of a text, without the space around them.
type lineSet map[string]bool

// lines returns the lines of a content; none where there is none any more.
func (w *stepper) lines(ctx context.Context, b space.BlobID) (lineSet, error) {
	if b == "" {
		return nil, nil
	}
	if l, ok := w.texts[b]; ok {
		return l, nil
	}
	text, err := w.o.Git.ReadBlob(ctx, w.id, b)
	if err != nil {
		if fault.CodeOf(err) == fault.NotFound {
			return nil, nil // a purge took it
		}
		return nil, err
	}
	out := lineSet{}
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			out[string(line)] = true
		}
	}
	// A branch of many commits to a file has the same texts compared with each.
	const most, long = 4 * maxWaited, 64 << 10
	if len(text) <= long {
		if w.texts == nil || len(w.texts) >= most {
			w.texts = map[space.BlobID]lineSet{}
		}
		w.texts[b] = out
	}
	return out, nil
}

func (l lineSet) add(o lineSet) {
	for s := range o {
		l[s] = true
	}
}

func (l lineSet) without(o lineSet) lineSet {
	out := lineSet{}
	for s := range l {
		if !o[s] {
			out[s] = true
		}
	}
	return out
}

func (l lineSet) long() lineSet {
	out := lineSet{}
	for s := range l {
		if len(s) >= shortLine {
			out[s] = true
		}
	}
	return out
}

func (l lineSet) common(o lineSet) (n int) {
	for s := range l {
		if o[s] {
			n++
		}
	}
	return n
}

// beside is what an AI makes of a file on a branch of its own, by a step.
type beside struct {
	waited
	step int
}

// noteBeside remembers those of a commit.
func (w *stepper) noteBeside(c space.Commit, step int) {
	for _, f := range c.Files {
		if f.New != "" && f.New != emptyBlob && Covers(f.Path) {
			w.besideAt[f.Path] = append(w.besideAt[f.Path], beside{waited{f.New, f.Old, database.Millis(c.Time)}, step})
		}
	}
}
