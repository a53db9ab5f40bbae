package reviews

import (
	"context"
	"strings"

	"satchel/gitstore"
	"satchel/internal/database"
	"satchel/internal/space"
)

// Bounds of how far back is looked.
const (
	listed   = 200  // commits that changed the skills, for who wrote them
	versions = 200  // of a file, for what a person knows of it
	walked   = 1000 // commits, for who wrote what a person brought back
)

// look finds out who wrote contents at a head.
type look struct {
	r     *Reviews
	id    space.SpaceID
	head  space.CommitID
	known map[key]row
	found []row // to be remembered
	made  map[space.CommitID]bool
}

// personal tells whether a person made a commit: by git, which has no trailers of
// ours, or by a tool that is none of an AI's, where this server says so. Trailers
// that came with a commit from elsewhere confirm nothing.
func (l *look) personal(ctx context.Context, c space.Commit) (bool, error) {
	if l.r.byAI(c) || c.Tool == "" {
		return c.Tool == "", nil
	}
	if l.made == nil {
		var err error
		if l.made, err = l.r.o.Git.Made(ctx, l.id); err != nil {
			return false, err
		}
	}
	return l.made[c.ID], nil
}

// bringsBack tells whether a commit may have brought back what was there before,
// all at once and without anybody's look at each content.
func bringsBack(c space.Commit) bool {
	for _, w := range []string{"Undo ", "Redo ", "Restore "} {
		if strings.HasPrefix(c.Message, w) {
			return true
		}
	}
	return false
}

// surely finds files that a person wrote by the commits that changed the skills at
// all, since to look at each file's history for itself takes long where it was not
// changed for long. It believes only commits that this server made.
func (l *look) surely(ctx context.Context, now map[space.Path]space.BlobID) error {
	left := map[space.Path]bool{}
	for p, b := range now {
		if _, ok := l.known[key{p, b}]; !ok && b != "" {
			left[p] = true
		}
	}
	if len(left) < 3 {
		return nil
	}
	list, err := l.r.o.Git.Log(ctx, l.id, gitstore.LogOptions{From: l.head, Path: skills, Limit: listed})
	if err != nil {
		return err
	}
	for _, c := range list {
		if len(left) == 0 {
			break
		}
		whole, err := l.r.o.Git.Show(ctx, l.id, c.ID)
		if err != nil {
			return err
		}
		personal, err := l.personal(ctx, c)
		if err != nil {
			return err
		}
		for _, f := range whole.Files {
			if !left[f.Path] {
				continue
			}
			delete(left, f.Path)
			if k := (key{f.Path, f.New}); now[f.Path] == f.New && c.Tool != "" && personal && !bringsBack(c) {
				l.known[k] = rowOf(f.Path, f.New, c, byPerson)
				l.found = append(l.found, l.known[k])
			}
		}
	}
	return nil
}

// judge puts a content into waiting where nobody has decided about it. With fresh,
// who wrote it is looked up even where the content is known.
func (l *look) judge(ctx context.Context, waiting map[space.Path]Review, p space.Path, b space.BlobID, fresh bool) error {
	x, ok := l.known[key{p, b}]
	if ok && (x.decision() == byPerson || x.decision() == Kept) {
		return nil
	}
	if !ok || fresh || x.decision() == Undone {
		list, err := l.log(ctx, p, ok)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return nil // it was never there
		}
		if x, err = l.origin(ctx, p, b, list); err != nil {
			return err
		}
		l.known[key{p, b}] = x
		l.found = append(l.found, x)
	}
	if x.decision() == byAI {
		waiting[p] = x.review()
	}
	return nil
}

// log returns the commits that changed a path, newest first: the last alone where
// a person wrote that, and not what was there before. An AI wrote the content once
// where it is known to wait, or to have waited.
func (l *look) log(ctx context.Context, p space.Path, known bool) ([]space.Commit, error) {
	o := gitstore.LogOptions{From: l.head, Path: p, Limit: 1}
	list, err := l.r.o.Git.Log(ctx, l.id, o)
	if err != nil || len(list) == 0 {
		return list, err
	}
	switch personal, err := l.personal(ctx, list[0]); {
	case err != nil:
		return nil, err
	case !personal:
		o.Limit = versions
		return l.r.o.Git.Log(ctx, l.id, o)
	case known || list[0].Tool != "" && bringsBack(list[0]):
		list, _, err := l.r.o.Git.LogPage(ctx, l.id, l.head, p, "", versions, walked)
		return list, err
	}
	return list, nil
}

// rowOf is what is remembered of a content that a commit made.
func rowOf(p space.Path, b space.BlobID, c space.Commit, d Decision) row {
	return row{
		Path: string(p), Blob: string(b), Decision: string(d),
		CommitID: string(c.ID), Tool: c.Tool, Client: c.Client, Changed: database.Millis(c.Time),
	}
}

// origin finds who made a content, and which version before it a person knows,
// from the commits that changed its path. What a person brought back is the AI's
// that made it once: whoever undoes an undoing has not looked at each file.
func (l *look) origin(ctx context.Context, p space.Path, b space.BlobID, list []space.Commit) (row, error) {
	c := list[0]
	personal, err := l.personal(ctx, c)
	if err != nil {
		return row{}, err
	}
	out := rowOf(p, b, c, byAI)
	switch {
	case personal:
		made, ok, err := l.madeByAI(ctx, p, b, list[1:])
		if err != nil {
			return row{}, err
		}
		if !ok {
			return rowOf(p, b, c, byPerson), nil
		}
		made.Decision, made.DecidedBy, made.DecidedAt, made.Base = string(byAI), "", 0, ""
		out = made
	case !l.r.byAI(c):
		out.Tool, out.Client = Elsewhere, "" // what it says of itself is not so
	}
	kept := map[string]bool{}
	for k, x := range l.known {
		if k.path == p && x.decision() == Kept {
			kept[x.CommitID] = true
		}
	}
	oldest := c
	for i, older := range list[1:] {
		knows, err := l.knows(ctx, p, list[1+i:])
		if err != nil {
			return row{}, err
		}
		if knows || kept[string(older.ID)] {
			out.Base = string(older.ID)
			return out, nil
		}
		oldest = older
	}
	out.Base = string(oldest.Parent)
	return out, nil
}

// knows tells whether a person knows the version that the first of commits made.
func (l *look) knows(ctx context.Context, p space.Path, list []space.Commit) (bool, error) {
	personal, err := l.personal(ctx, list[0])
	if err != nil || !personal {
		return false, err
	}
	b, _, _, err := l.r.o.Git.Blob(ctx, l.id, list[0].ID, p)
	if err != nil {
		return false, err
	}
	var before []space.Commit
	if bringsBack(list[0]) {
		before = list[1:]
	}
	_, ai, err := l.madeByAI(ctx, p, b, before)
	return !ai, err
}

// madeByAI tells whether an AI made a content at a path, of which no person has
// said that it is good: as is remembered, or one of the commits shows. A file that
// is gone instructs nobody.
func (l *look) madeByAI(ctx context.Context, p space.Path, b space.BlobID, list []space.Commit) (row, bool, error) {
	if b == "" {
		return row{}, false, nil
	}
	if x, ok := l.known[key{p, b}]; ok {
		return x, x.decision() == byAI || x.decision() == Undone, nil
	}
	for _, c := range list {
		personal, err := l.personal(ctx, c)
		if err != nil {
			return row{}, false, err
		}
		if personal {
			continue
		}
		was, _, _, err := l.r.o.Git.Blob(ctx, l.id, c.ID, p)
		if err != nil {
			return row{}, false, err
		}
		if was == b {
			out := rowOf(p, b, c, byAI)
			if !l.r.byAI(c) {
				out.Tool, out.Client = Elsewhere, ""
			}
			return out, true, nil
		}
	}
	return row{}, false, nil
}
