package reviews

import (
	"context"
	"fmt"
	"path"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/gitstore"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// unseenRow is a content that waited somewhere and that nobody confirmed since: git
// elsewhere may bring it back, long after it was undone or deleted.
type unseenRow struct {
	SpaceID string `gorm:"primaryKey"`
	Blob    string `gorm:"primaryKey"`
}

func (unseenRow) TableName() string { return "reviews_unseen" }

// unseen are the contents that became unseen (true) or known (false) since they were
// saved.
type unseen map[space.BlobID]bool

// note takes in what a path has.
func (u unseen) note(x *row) {
	switch x.baseline() {
	case x.now:
		u.known(x.now)
	default:
		if x.now.blob != "" {
			u[x.now.blob] = true
		}
	}
}

func (u unseen) known(k content) {
	if k.blob != "" {
		u[k.blob] = false
	}
}

func (u unseen) save(tx *gorm.DB, id space.SpaceID) error {
	var put []unseenRow
	var gone []string
	for b, is := range u {
		if is {
			put = append(put, unseenRow{string(id), string(b)})
		} else {
			gone = append(gone, string(b))
		}
	}
	if len(put) > 0 {
		if err := tx.Clauses(clause.OnConflict{DoNothing: true}).CreateInBatches(put, 100).Error; err != nil {
			return fmt.Errorf("keep what nobody confirmed: %w", err)
		}
	}
	for from := 0; from < len(gone); from += 100 {
		part := gone[from:min(from+100, len(gone))]
		if err := tx.Where("space_id = ? AND blob IN ?", string(id), part).Delete(&unseenRow{}).Error; err != nil {
			return fmt.Errorf("forget what was not confirmed: %w", err)
		}
	}
	return nil
}

// nobodyConfirmed finds those of the changes whose content nobody did.
func (w *stepper) nobodyConfirmed(ctx context.Context, list []change) (map[space.BlobID]bool, error) {
	out := map[space.BlobID]bool{}
	var ask []string
	for _, f := range list {
		if is, ok := w.unseen[f.now.blob]; !ok {
			ask = append(ask, string(f.now.blob))
		} else if is {
			out[f.now.blob] = true
		}
	}
	for from := 0; from < len(ask); from += 100 {
		var rows []unseenRow
		part := ask[from:min(from+100, len(ask))]
		if err := w.o.DB.Read(ctx).Where("space_id = ? AND blob IN ?", string(w.id), part).Find(&rows).Error; err != nil {
			return nil, fmt.Errorf("find what nobody confirmed: %w", err)
		}
		for _, x := range rows {
			out[space.BlobID(x.Blob)] = true
		}
	}
	return out, nil
}

// emptyBlob is git's name of a file without content, of which there is nothing to see.
const emptyBlob = space.BlobID("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")

// brought finds the files of a commit from elsewhere whose content its maker need not
// have written, and does not know from another path: the space had it, be it that it was
// taken away since, or it waited once and nobody confirmed it.
func (w *stepper) brought(ctx context.Context, c space.Commit, s gitstore.Step, files []change, carried map[space.Path]carry) (map[space.Path]bool, error) {
	known := map[space.BlobID]bool{emptyBlob: true}
	for _, x := range w.rows {
		known[x.baseline().blob] = true
	}
	var ask []change
	for _, f := range files {
		if _, moved := carried[f.path]; !moved && f.now.blob != "" && f.now.blob != f.old.blob && !known[f.now.blob] {
			ask = append(ask, f)
		}
	}
	if len(ask) == 0 {
		return nil, nil
	}
	out := map[space.Path]bool{}
	unseen, err := w.nobodyConfirmed(ctx, ask)
	if err != nil {
		return nil, err
	}
	var rest []change
	// What the commit took away, by what it was and, where nobody is asked about it, by
	// its name: it may have come with more changes.
	was, names := map[space.BlobID]bool{}, map[string]bool{}
	for _, f := range c.Files {
		was[f.Old] = true
		if f.New == "" && !Covers(f.Path) {
			names[path.Base(string(f.Path))] = true
		}
	}
	for _, f := range ask {
		switch {
		case unseen[f.now.blob]:
			out[f.path] = true
		case w.plain[s.ID]:
		case was[f.now.blob] || f.old.blob == "" && names[path.Base(string(f.path))]:
			out[f.path] = true
		default:
			rest = append(rest, f)
		}
	}
	if len(rest) == 0 {
		return out, nil
	}
	if err := w.lookBeside(ctx); err != nil {
		return nil, err
	}
	had := &contents{}
	if len(s.Parents) > 0 {
		if had, err = w.contentsOf(ctx, s.Parents[0]); err != nil {
			return nil, err
		}
	}
	var compare []change // with what waited there
	for _, f := range rest {
		out[f.path] = had.all || had.files[f.now.blob] > 0 || w.beside[f.now.blob] > w.at
		if !out[f.path] {
			if out[f.path], err = w.outside(ctx, c, f); err != nil {
				return nil, err
			}
		}
		var known content
		if x := w.rows[f.path]; x != nil {
			known = x.baseline()
		}
		if !out[f.path] && f.old == known {
			compare = append(compare, f)
		}
	}
	return out, w.waitedAgain(ctx, compare, out)
}

// lookBeside finds what AIs made on branches of their own, and the last of the steps that
// brought each: where a clock elsewhere is slow, what was made of it is taken in before
// it. A step that is whole has all before it in its history, and is beside nothing.
func (w *stepper) lookBeside(ctx context.Context) error {
	if w.beside != nil {
		return nil
	}
	found := map[space.BlobID]int{}
	w.besideAt = map[space.Path][]beside{}
	for i, s := range w.steps {
		if s.Whole || len(s.Parents) > 1 || w.plain[s.ID] || !w.made[s.ID] && !s.Traced {
			continue
		}
		if err := w.breathe(ctx); err != nil {
			return err
		}
		c, err := w.o.Git.Show(ctx, w.id, s.ID)
		if err != nil {
			return err
		}
		if c.Tool == "" && !s.Traced {
			continue
		}
		for _, f := range c.Files {
			if f.New != "" && Covers(f.Path) {
				found[f.New] = i
			}
		}
		w.noteBeside(c, i)
	}
	w.beside = found
	return nil
}

// contents are what the files of a commit have.
type contents struct {
	at    space.CommitID
	files map[space.BlobID]int // how many have it
	all   bool                 // there are too many to tell
}

// contentsOf returns what the files of a commit have. A walk along a history lists
// them once, and from then on what differs.
func (w *stepper) contentsOf(ctx context.Context, at space.CommitID) (*contents, error) {
	if w.tree != nil && (w.tree.at == at || w.tree.all) {
		return w.tree, nil
	}
	var list []space.FileChange
	var err error
	k := w.tree
	if k == nil {
		k = &contents{files: map[space.BlobID]int{}}
		var files []space.Entry
		files, err = w.o.Git.Files(ctx, w.id, at, "")
		for _, f := range files {
			list = append(list, f.Added())
		}
	} else {
		list, err = w.o.Git.Diff(ctx, w.id, k.at, at)
	}
	switch {
	case fault.CodeOf(err) == fault.TooLarge:
		k = &contents{all: true}
	case err != nil:
		return nil, err
	}
	for _, f := range list {
		if f.Old != "" {
			k.files[f.Old]--
		}
		if f.New != "" {
			k.files[f.New]++
		}
	}
	k.at, w.tree = at, k
	return k, nil
}
