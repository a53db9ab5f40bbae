package rewrite

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/space"
)

// File returns the new content of a file of the history, or content itself if nothing
// changes. If keep is false, the file is left out as if the commit had not written it.
// File must not modify content. p may break the rules of space.ParsePath, as paths of
// imported histories may. The content of a link is its target; a link whose new target
// breaks the rules is left out. An empty p means that content is the message of a commit
// or an annotated tag, or the name or address of an author or committer; keep is ignored
// for these.
type File func(p space.Path, content []byte) (out []byte, keep bool)

// Options are the parameters of [New].
type Options struct {
	// Trees reads the repository. The Rewriter adds what it writes to Trees.DB.
	Trees trees.Reader
	Disk  packfile.Disk
	File  File
	// Tips are the commits to rewrite, with their ancestors, except the commits of Old.
	Tips []packfile.Hash
	Old  map[packfile.Hash]bool
}

// Rewriter writes a new history into packs. No ref reaches the new history until the caller
// moves a ref.
type Rewriter struct {
	o       Options
	db      *packfile.DB
	w       *packfile.Writer
	packs   []*packfile.Pack // finished
	pending int64            // bytes of objects that are in no finished pack

	done     map[packfile.Hash]packfile.Hash // the new commit of each old commit
	dropped  map[packfile.Hash]bool
	verdicts map[fileAt]verdict
	purged   map[packfile.Hash]bool // blobs that were rewritten or left out somewhere
	files    map[string]bool
	names    map[string]string // the new form of each old name or address
	commits  int
	words    int
}

// New returns a Rewriter.
func New(o Options) *Rewriter {
	o.Trees.DB.Pending = map[packfile.Hash]packfile.Object{}
	return &Rewriter{
		o: o, db: o.Trees.DB, done: map[packfile.Hash]packfile.Hash{}, dropped: map[packfile.Hash]bool{}, verdicts: map[fileAt]verdict{},
		purged: map[packfile.Hash]bool{}, files: map[string]bool{}, names: map[string]string{},
	}
}

// Commits counts the commits that were rewritten or dropped.
func (p *Rewriter) Commits() int { return p.commits }

// Words counts the commits whose message or names were rewritten, and the tags whose message
// was.
func (p *Rewriter) Words() int { return p.words }

// Files lists the paths of files whose content was rewritten or left out, sorted.
func (p *Rewriter) Files() []string { return slices.Sorted(maps.Keys(p.files)) }

// Dropped reports whether a commit became empty and was dropped.
func (p *Rewriter) Dropped(h packfile.Hash) bool { return p.dropped[h] }

// Discard removes the packs that the Rewriter wrote.
func (p *Rewriter) Discard() {
	if p.w != nil {
		p.w.Abort()
	}
	for _, pk := range p.packs {
		pk.Remove()
	}
}

// fileAt is a blob at a path.
type fileAt struct {
	path string
	hash packfile.Hash
	link bool
}

// verdict is the new blob of a fileAt, and whether the file stays.
type verdict struct {
	hash packfile.Hash
	keep bool
}

// manyChanges is the number of changes in one commit above which an index of names is faster.
const manyChanges = 32

// batch is the size in bytes at which new objects in memory are written as a pack.
const batch = 32 << 20

// Now returns the commit that replaces h, or h if it stays.
func (p *Rewriter) Now(h packfile.Hash) packfile.Hash {
	if n, ok := p.done[h]; ok {
		return n
	}
	return h
}

// Run rewrites the tips and their ancestors, parents first.
func (p *Rewriter) Run(ctx context.Context) error {
	for _, tip := range p.o.Tips {
		stack := []packfile.Hash{tip}
		for len(stack) > 0 {
			h := stack[len(stack)-1]
			if _, ok := p.done[h]; ok || p.o.Old[h] {
				stack = stack[:len(stack)-1]
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			c, err := commits.Get(p.db, h)
			if err != nil {
				return err
			}
			n := len(stack)
			for _, parent := range c.Parents {
				if _, ok := p.done[parent]; !ok && !p.o.Old[parent] {
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
	return p.Flush()
}

// commit rewrites a commit whose parents are done.
func (p *Rewriter) commit(ctx context.Context, h packfile.Hash, c commits.Raw) (packfile.Hash, error) {
	tree, err := p.tree(ctx, c)
	if err != nil {
		return packfile.Hash{}, err
	}
	parents, err := p.parents(c)
	if err != nil {
		return packfile.Hash{}, err
	}
	o, err := p.db.Read(h)
	if err != nil {
		return packfile.Hash{}, err
	}
	was, said, _ := bytes.Cut(o.Data, []byte("\n\n"))
	head, msg := p.people(was), p.message(said)
	sameWords := bytes.Equal(head, was) && bytes.Equal(msg, said)
	if tree == c.Tree && slices.Equal(parents, c.Parents) && sameWords {
		return h, nil
	}
	if len(parents) == 1 {
		parent, err := commits.Get(p.db, parents[0])
		if err != nil {
			return packfile.Hash{}, err
		}
		before, err := commits.Get(p.db, c.Parents[0])
		if err != nil {
			return packfile.Hash{}, err
		}
		if parent.Tree == tree && (before.Tree != c.Tree || len(c.Parents) > 1) {
			p.dropped[h] = true
			return parents[0], nil
		}
	}
	if !sameWords {
		p.words++
	}
	return p.add(plumbing.CommitObject, reparent(head, tree, parents, msg))
}

// people rewrites the author and the committer in the header of a commit. It rewrites
// names and addresses separately to keep the syntax between them.
func (p *Rewriter) people(head []byte) []byte {
	var out []byte
	for line := range bytes.Lines(head) {
		from, to := commits.PersonIn(line)
		if lt := bytes.IndexByte(line, '<'); from > 0 && from <= lt && lt < to {
			out = append(out, line[:from]...)
			out = append(out, p.name(line[from:lt])...)
			out = append(out, '<')
			out = append(out, p.name(line[lt+1:to-1])...)
			line = line[to-1:]
		}
		out = append(out, line...)
	}
	return out
}

// name rewrites a name or an address, and caches the result.
func (p *Rewriter) name(text []byte) string {
	out, ok := p.names[string(text)]
	if !ok {
		out = string(p.message(text))
		p.names[string(text)] = out
	}
	return out
}

// message rewrites the message of a commit or a tag, or a name. It ignores keep.
func (p *Rewriter) message(msg []byte) []byte {
	out, _ := p.o.File("", msg)
	return out
}

// parents returns a commit's new parents. If a parent was dropped, parents leaves out the
// parents that another parent reaches.
func (p *Rewriter) parents(c commits.Raw) ([]packfile.Hash, error) {
	var out []packfile.Hash
	lost := false
	for _, h := range c.Parents {
		lost = lost || p.dropped[h]
		if n := p.Now(h); !slices.Contains(out, n) {
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
			if redundant, err = commits.Reaches(p.db, other, h); err != nil {
				return nil, err
			}
		}
		if !redundant {
			kept = append(kept, h)
		}
	}
	return kept, nil
}

// tree returns a commit's new tree: the tree of the rewritten first parent with the
// commit's changes. A file that a merge took from another parent becomes that of the
// rewritten parent.
func (p *Rewriter) tree(ctx context.Context, c commits.Raw) (packfile.Hash, error) {
	var was, now []packfile.Hash // the parents' trees
	for _, h := range c.Parents {
		a, err := commits.Get(p.db, h)
		if err != nil {
			return packfile.Hash{}, err
		}
		b, err := commits.Get(p.db, p.Now(h))
		if err != nil {
			return packfile.Hash{}, err
		}
		was, now = append(was, a.Tree), append(now, b.Tree)
	}
	var from, base packfile.Hash
	if len(was) > 0 {
		from, base = was[0], now[0]
	}
	var cs []trees.Change
	if err := p.o.Trees.Diff(ctx, from, c.Tree, &cs); err != nil {
		return packfile.Hash{}, err
	}
	p.db.ByName = nil // the old index has the previous commit's trees
	if len(cs) > manyChanges {
		p.db.ByName = packfile.NameIndex{}
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
		return c.Tree, nil
	}
	var objs []trees.Object
	tree, err := p.o.Trees.Rewrite(base, edits, &objs)
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

// change rewrites a change against the first parent. If keep is false, the entry of the
// rewritten first parent stays.
func (p *Rewriter) change(ch trees.Change, was, now []packfile.Hash) (e packfile.TreeEntry, keep bool, err error) {
	if ch.New.Mode == 0 {
		return ch.New, true, nil
	}
	e = ch.New
	// A change of only the mode brings no new content, nor does an entry that a merge
	// took from another parent. The content is that of the rewritten parent.
	for i := range was {
		at, err := p.o.Trees.Lookup(was[i], ch.Path)
		if err != nil {
			return e, false, err
		}
		if !at.HasFile() || !e.IsFile() || at.Hash != e.Hash || at.IsLink() != e.IsLink() || i > 0 && at.Mode != e.Mode {
			continue
		}
		became, err := p.o.Trees.Lookup(now[i], ch.Path)
		if err != nil {
			return e, false, err
		}
		if !became.HasFile() {
			return packfile.TreeEntry{}, true, nil // the file was left out of the rewritten parent
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

// judge calls File for a blob at a path, and caches the result.
func (p *Rewriter) judge(f fileAt) (verdict, error) {
	if v, ok := p.verdicts[f]; ok {
		return v, nil
	}
	data, err := p.db.Blob(f.hash)
	if err != nil {
		return verdict{}, err
	}
	v := verdict{hash: f.hash, keep: true}
	out, keep := p.o.File(space.Path(f.path), data)
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

// add writes an object, unless the database has it.
func (p *Rewriter) add(k packfile.Kind, data []byte) (packfile.Hash, error) {
	h := plumbing.ComputeHash(k, data)
	if p.db.Has(h) {
		return h, nil
	}
	if p.w == nil {
		w, err := packfile.NewWriter(p.o.Disk, p.db.PackDir())
		if err != nil {
			return h, err
		}
		p.w = w
	}
	if err := p.w.AddNamed(h, k, data); err != nil {
		return h, err
	}
	data = bytes.Clone(data)
	p.db.Pending[h] = packfile.Object{Kind: k, Data: data}
	if p.pending += int64(len(data)); p.pending > batch {
		return h, p.Flush()
	}
	return h, nil
}

// Flush writes the pending objects as a pack.
func (p *Rewriter) Flush() error {
	if p.w == nil {
		return nil
	}
	pk, err := p.w.Finish()
	p.w = nil
	if err != nil {
		return err
	}
	p.packs = append(p.packs, pk)
	p.db.Add(pk)
	p.pending = 0
	clear(p.db.Pending)
	return nil
}

// reparent returns a commit object with the given header, but with another tree, other
// parents and another message, and without signatures.
func reparent(head []byte, tree packfile.Hash, parents []packfile.Hash, msg []byte) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, h := range parents {
		fmt.Fprintf(&b, "parent %s\n", h)
	}
	skipped := false
	for line := range strings.SplitSeq(string(head), "\n") {
		word, _, _ := strings.Cut(line, " ")
		if word != "" { // a line that begins with a space continues the previous line
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

// HoldsPurged reports whether e is or contains a blob that was rewritten or left out. e
// is not a commit.
func (p *Rewriter) HoldsPurged(ctx context.Context, e packfile.TreeEntry) (gone bool, err error) {
	if !e.IsDir() {
		return p.purged[e.Hash], nil
	}
	err = p.o.Trees.Walk(ctx, e.Hash, "", func(_ string, e packfile.TreeEntry) error {
		gone = gone || p.purged[e.Hash]
		return nil
	})
	return gone, err
}

// Retag writes an annotated tag again, for the rewritten commit next. It rewrites the
// tag's message and drops the tag's signature. It returns object if nothing changes,
// and next for a tag of a tag that changed.
func (p *Rewriter) Retag(object, commit, next packfile.Hash) (packfile.Hash, error) {
	o, err := p.db.Read(object)
	if err != nil {
		return packfile.Hash{}, err
	}
	head, msg, _ := bytes.Cut(o.Data, []byte("\n\n"))
	_, rest, ok := bytes.Cut(head, []byte("\n"))
	if !ok || !bytes.HasPrefix(head, []byte("object "+commit.String())) {
		if next == commit {
			return object, nil
		}
		return next, nil // a tag of a tag: the commit replaces the outer tag
	}
	said := msg
	if i := bytes.Index(msg, []byte("-----BEGIN ")); i >= 0 {
		msg = msg[:i]
	}
	same := bytes.Equal(p.message(said), said)
	if next == commit && same {
		return object, nil
	}
	if !same {
		p.words++
	}
	return p.add(o.Kind, fmt.Appendf(nil, "object %s\n%s\n\n%s", next, rest, p.message(msg)))
}
