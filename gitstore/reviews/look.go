package reviews

import (
	"context"

	"satchel/gitstore"
	"satchel/internal/database"
	"satchel/internal/space"
)

// Bounds of how far back is looked.
const (
	listed   = 200 // commits that changed the skills, for who wrote them
	versions = 200 // of a file, for what a person knows of it
)

// look finds out who wrote contents at a head.
type look struct {
	r     *Reviews
	id    space.SpaceID
	head  space.CommitID
	known map[key]row
	found []row // to be remembered
}

// surely finds files that a person wrote by the commits that changed the skills at
// all, since to look at each file's history for itself takes long where it was not
// changed for long. It believes only commits of one parent, which this server made.
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
		for _, f := range whole.Files {
			if !left[f.Path] {
				continue
			}
			delete(left, f.Path)
			if k := (key{f.Path, f.New}); now[f.Path] == f.New && c.Tool != "" && !l.r.byAI(c) {
				l.known[k] = l.r.origin(f.Path, f.New, []space.Commit{c}, l.known)
				l.found = append(l.found, l.known[k])
			}
		}
	}
	return nil
}

// judge puts a content into waiting where nobody has decided about it. With fresh,
// who wrote it is looked up even where the content is known: a person may have
// brought back what an AI once wrote.
func (l *look) judge(ctx context.Context, waiting map[space.Path]Review, p space.Path, b space.BlobID, fresh bool) error {
	x, ok := l.known[key{p, b}]
	if ok && (x.decision() == byPerson || x.decision() == Kept) {
		return nil
	}
	if !ok || fresh || x.decision() == Undone {
		list, err := l.log(ctx, p)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return nil // it was never there
		}
		x = l.r.origin(p, b, list, l.known)
		l.known[key{p, b}] = x
		l.found = append(l.found, x)
	}
	if x.decision() == byAI {
		waiting[p] = x.review()
	}
	return nil
}

// log returns the commits that changed a path, newest first: the last alone where
// that was a person's.
func (l *look) log(ctx context.Context, p space.Path) ([]space.Commit, error) {
	o := gitstore.LogOptions{From: l.head, Path: p, Limit: 1}
	list, err := l.r.o.Git.Log(ctx, l.id, o)
	if err != nil || len(list) == 0 || !l.r.byAI(list[0]) {
		return list, err
	}
	o.Limit = versions
	return l.r.o.Git.Log(ctx, l.id, o)
}

// origin finds who made a content, and which version before it a person knows,
// from the commits that changed its path.
func (r *Reviews) origin(p space.Path, b space.BlobID, list []space.Commit, known map[key]row) row {
	c := list[0]
	out := row{
		Path: string(p), Blob: string(b), Decision: string(byPerson),
		CommitID: string(c.ID), Tool: c.Tool, Client: c.Client, Changed: database.Millis(c.Time),
	}
	if !r.byAI(c) {
		return out
	}
	out.Decision = string(byAI)
	kept := map[string]bool{}
	for k, x := range known {
		if k.path == p && x.decision() == Kept {
			kept[x.CommitID] = true
		}
	}
	oldest := c
	for _, older := range list[1:] {
		if !r.byAI(older) || kept[string(older.ID)] {
			out.Base = string(older.ID)
			return out
		}
		oldest = older
	}
	out.Base = string(oldest.Parent)
	return out
}
