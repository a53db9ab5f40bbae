package gitstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/space"
)

// purger makes the new history, in packs that nothing reaches until it is
// installed.
type purger struct {
	repo    *repo // reads what the space has and what was made so far
	rewrite RewriteFile
	starts  []namedRef
	old     map[packfile.Hash]bool // the commits that stay as they are
	w       *packfile.Writer
	packs   []*packfile.Pack // written
	pending int64            // bytes of objects that are in no finished pack

	done      map[packfile.Hash]packfile.Hash // what a commit becomes
	dropped   map[packfile.Hash]bool
	verdicts  map[fileAt]verdict
	purged    map[packfile.Hash]bool // contents that were rewritten or left out somewhere
	files     map[string]bool
	names     map[string]string // what names and addresses become
	commits   int
	words     int // commits and tags whose message or names were rewritten
	installed bool
}

// fileAt is a content at a path.
type fileAt struct {
	path string
	hash packfile.Hash
	link bool
}

// verdict is what becomes of it.
type verdict struct {
	hash packfile.Hash
	keep bool
}

// purgeBatch is how many bytes of new objects are held in memory before they
// are written as a pack.
const purgeBatch = 32 << 20

func (r *repo) newPurger(ctx context.Context, since space.CommitID, rewrite RewriteFile) (*purger, error) {
	old := map[packfile.Hash]bool{}
	if since != "" {
		st, err := r.resolve(string(since))
		if err != nil {
			return nil, err
		}
		if err := r.ancestry(ctx, []packfile.Hash{st.id}, old); err != nil {
			return nil, r.internalf(err, "purge")
		}
	}
	refs, err := r.refs(ctx)
	if err != nil {
		return nil, r.internalf(err, "purge")
	}
	db, err := packfile.Open(r.db.Dir, r.s.cache)
	if err != nil {
		return nil, r.internalf(err, "purge")
	}
	db.Pending = map[packfile.Hash]packfile.Object{}
	return &purger{
		repo:    &repo{s: r.s, id: r.id, dir: r.dir, db: db},
		rewrite: rewrite, starts: append(refs, namedRef{name: branch, object: r.head.Load().id, commit: r.head.Load().id}),
		old: old, done: map[packfile.Hash]packfile.Hash{}, dropped: map[packfile.Hash]bool{}, verdicts: map[fileAt]verdict{}, purged: map[packfile.Hash]bool{}, files: map[string]bool{}, names: map[string]string{},
	}, nil
}

// Close removes what was written, unless it was installed.
func (p *purger) Close() {
	if p.w != nil {
		p.w.Abort()
	}
	p.repo.db.Close()
	if p.installed {
		return
	}
	for _, pk := range p.packs {
		pk.Remove()
	}
}

// ancestry adds commits and all that they reach to seen.
func (r *repo) ancestry(ctx context.Context, from []packfile.Hash, seen map[packfile.Hash]bool) error {
	for queue := from; len(queue) > 0; {
		h := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if seen[h] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c, err := r.rawCommit(h)
		if err != nil {
			return err
		}
		seen[h] = true
		queue = append(queue, c.parents...)
	}
	return nil
}

// now returns what a commit becomes.
func (p *purger) now(h packfile.Hash) packfile.Hash {
	if n, ok := p.done[h]; ok {
		return n
	}
	return h
}

// run rewrites everything that the refs reach, parents first.
func (p *purger) run(ctx context.Context) error {
	for _, ref := range p.starts {
		if ref.commit.IsZero() {
			continue
		}
		stack := []packfile.Hash{ref.commit}
		for len(stack) > 0 {
			h := stack[len(stack)-1]
			if _, ok := p.done[h]; ok || p.old[h] {
				stack = stack[:len(stack)-1]
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			c, err := p.repo.rawCommit(h)
			if err != nil {
				return err
			}
			n := len(stack)
			for _, parent := range c.parents {
				if _, ok := p.done[parent]; !ok && !p.old[parent] {
					stack = append(stack, parent)
				}
			}
			if len(stack) > n {
				continue
			}
			stack = stack[:n-1]
			if p.done[h], err = p.commit(ctx, h, c); err != nil {
				return fmt.Errorf("commit %s: %w", h, err)
			}
			if p.done[h] != h {
				p.commits++
			}
		}
	}
	return p.flush()
}

// commit returns what a commit becomes, whose parents are done.
func (p *purger) commit(ctx context.Context, h packfile.Hash, c rawCommit) (packfile.Hash, error) {
	tree, err := p.tree(ctx, c)
	if err != nil {
		return packfile.Hash{}, err
	}
	parents, err := p.parents(c)
	if err != nil {
		return packfile.Hash{}, err
	}
	o, err := p.repo.db.Read(h)
	if err != nil {
		return packfile.Hash{}, err
	}
	was, said, _ := bytes.Cut(o.Data, []byte("\n\n"))
	head, msg := p.people(was), p.message(said)
	sameWords := bytes.Equal(head, was) && bytes.Equal(msg, said)
	if tree == c.tree && slices.Equal(parents, c.parents) && sameWords {
		return h, nil
	}
	if len(parents) == 1 {
		parent, err := p.repo.rawCommit(parents[0])
		if err != nil {
			return packfile.Hash{}, err
		}
		before, err := p.repo.rawCommit(c.parents[0])
		if err != nil {
			return packfile.Hash{}, err
		}
		if parent.tree == tree && (before.tree != c.tree || len(c.parents) > 1) {
			p.dropped[h] = true
			return parents[0], nil
		}
	}
	if !sameWords {
		p.words++
	}
	return p.add(plumbing.CommitObject, reparent(head, tree, parents, msg))
}

// people rewrites the author and the committer in the header of a commit. It
// rewrites names and addresses separately, so that the syntax between them stays.
func (p *purger) people(head []byte) []byte {
	var out []byte
	for line := range bytes.Lines(head) {
		from, to := personIn(line)
		if lt := bytes.IndexByte(line, '<'); from > 0 && from <= lt && lt < to {
			out = append(out, line[:from]...)
			out = append(out, p.Name(line[from:lt])...)
			out = append(out, '<')
			out = append(out, p.Name(line[lt+1:to-1])...)
			line = line[to-1:]
		}
		out = append(out, line...)
	}
	return out
}

// Name rewrites a name or an address, and caches the result.
func (p *purger) Name(text []byte) string {
	out, ok := p.names[string(text)]
	if !ok {
		out = string(p.message(text))
		p.names[string(text)] = out
	}
	return out
}

// message rewrites the message of a commit or a tag, or a name in one. It is never
// left out.
func (p *purger) message(msg []byte) []byte {
	out, _ := p.rewrite("", msg)
	return out
}

// parents returns a commit's new parents. Where a dropped commit leaves a merge
// with a parent twice, or with one that another reaches anyhow, it goes.
func (p *purger) parents(c rawCommit) ([]packfile.Hash, error) {
	var out []packfile.Hash
	lost := false
	for _, h := range c.parents {
		lost = lost || p.dropped[h]
		if n := p.now(h); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	if !lost || len(out) < 2 {
		return out, nil
	}
	var kept []packfile.Hash
	for i, h := range out {
		redundant := false
		for j, other := range out {
			if i == j || redundant {
				continue
			}
			var err error
			if redundant, err = p.repo.reaches(other, h); err != nil {
				return nil, err
			}
		}
		if !redundant {
			kept = append(kept, h)
		}
	}
	return kept, nil
}

// Tree returns a commit's new tree: that of its rewritten first parent with
// what the commit changed, where a merge's other parents' files are those of
// the rewritten ones.
func (p *purger) tree(ctx context.Context, c rawCommit) (packfile.Hash, error) {
	var was, now []packfile.Hash // the parents' trees
	for _, h := range c.parents {
		a, err := p.repo.rawCommit(h)
		if err != nil {
			return packfile.Hash{}, err
		}
		b, err := p.repo.rawCommit(p.now(h))
		if err != nil {
			return packfile.Hash{}, err
		}
		was, now = append(was, a.tree), append(now, b.tree)
	}
	var from, base packfile.Hash
	if len(was) > 0 {
		from, base = was[0], now[0]
	}
	var cs []trees.Change
	if err := p.repo.trees().Diff(ctx, from, c.tree, &cs); err != nil {
		return packfile.Hash{}, err
	}
	p.repo.db.ByName = nil // trees of the commit before
	if len(cs) > manyRequests {
		p.repo.db.ByName = packfile.NameIndex{}
	}
	same := from == base
	var edits []trees.Edit
	for _, ch := range cs {
		e, keep, err := p.change(ch, was, now)
		if err != nil {
			return packfile.Hash{}, err
		}
		if keep {
			edits = append(edits, trees.Edit{Path: ch.Path, Mode: e.Mode, Hash: e.Hash})
		}
		same = same && keep && e == ch.New
	}
	if same {
		return c.tree, nil
	}
	var objs []trees.Object
	tree, err := p.repo.trees().Rewrite(base, edits, &objs)
	if err != nil {
		return packfile.Hash{}, err
	}
	if tree.IsZero() {
		return p.add(plumbing.TreeObject, nil)
	}
	for _, o := range objs {
		if _, err := p.add(o.Kind, o.Data); err != nil {
			return packfile.Hash{}, err
		}
	}
	return tree, nil
}

// change returns what a change against the first parent becomes; without keep
// the rewritten first parent's entry stays.
func (p *purger) change(ch trees.Change, was, now []packfile.Hash) (e packfile.TreeEntry, keep bool, err error) {
	if ch.New.Mode == 0 {
		return ch.New, true, nil
	}
	e = ch.New
	// A change of mode alone, and what a merge took from another parent, brings
	// nothing of its own: the content is what became of it there.
	for i := range was {
		at, err := p.repo.trees().Lookup(was[i], ch.Path)
		if err != nil {
			return e, false, err
		}
		if !at.HasFile() || !e.IsFile() || at.Hash != e.Hash || at.IsLink() != e.IsLink() || i > 0 && at.Mode != e.Mode {
			continue
		}
		became, err := p.repo.trees().Lookup(now[i], ch.Path)
		if err != nil {
			return e, false, err
		}
		if !became.HasFile() {
			return packfile.TreeEntry{}, true, nil // it was left out there
		}
		e.Hash = became.Hash
		if became.IsLink() != e.IsLink() {
			e.Mode = became.Mode
		}
		return e, true, nil
	}
	if !e.IsFile() {
		return e, true, nil // a submodule
	}
	v, err := p.judge(fileAt{ch.Path, e.Hash, e.IsLink()})
	e.Hash = v.hash
	return e, v.keep, err
}

// judge asks what becomes of a file's content, once.
func (p *purger) judge(f fileAt) (verdict, error) {
	if v, ok := p.verdicts[f]; ok {
		return v, nil
	}
	data, err := p.repo.db.Blob(f.hash)
	if err != nil {
		return verdict{}, err
	}
	v := verdict{hash: f.hash, keep: true}
	out, keep := p.rewrite(space.Path(f.path), data)
	switch {
	case !keep, f.link && !bytes.Equal(out, data) && space.CheckSymlink(space.Path(f.path), string(out)) != nil:
		v.keep = false
		p.files[f.path], p.purged[f.hash] = true, true
	case !bytes.Equal(out, data):
		p.files[f.path], p.purged[f.hash] = true, true
		if v.hash, err = p.add(plumbing.BlobObject, out); err != nil {
			return verdict{}, err
		}
	}
	p.verdicts[f] = v
	return v, nil
}

// Add writes an object, unless the space has it.
func (p *purger) add(k packfile.Kind, data []byte) (packfile.Hash, error) {
	h := plumbing.ComputeHash(k, data)
	if p.repo.db.Has(h) {
		return h, nil
	}
	if p.w == nil {
		w, err := packfile.NewWriter(p.repo.s.o.disk, p.repo.db.PackDir())
		if err != nil {
			return h, err
		}
		p.w = w
	}
	if err := p.w.AddNamed(h, k, data); err != nil {
		return h, err
	}
	data = bytes.Clone(data)
	p.repo.db.Pending[h] = packfile.Object{Kind: k, Data: data}
	if p.pending += int64(len(data)); p.pending > purgeBatch {
		return h, p.flush()
	}
	return h, nil
}

// flush writes what is pending as a pack.
func (p *purger) flush() error {
	if p.w == nil {
		return nil
	}
	pk, err := p.w.Finish()
	p.w = nil
	if err != nil {
		return err
	}
	p.packs = append(p.packs, pk)
	p.repo.db.Add(pk)
	p.pending = 0
	clear(p.repo.db.Pending)
	return nil
}

// reparent returns a commit with the given header but another tree, other parents,
// another message and no signatures.
func reparent(head []byte, tree packfile.Hash, parents []packfile.Hash, msg []byte) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, h := range parents {
		fmt.Fprintf(&b, "parent %s\n", h)
	}
	skipped := false
	for line := range strings.SplitSeq(string(head), "\n") {
		word, _, _ := strings.Cut(line, " ")
		if word != "" { // a line that begins with a space continues the last one
			skipped = slices.Contains([]string{"tree", "parent", "gpgsig", "gpgsig-sha256", "mergetag"}, word)
		}
		if !skipped {
			b.WriteString(line + "\n")
		}
	}
	b.WriteString("\n")
	b.Write(msg)
	return []byte(b.String())
}
