package index

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"satchel/internal/space"
	"satchel/tools/index/rank"
)

// history is a Source whose commits are written by tests. For the index it is like a real
// object store: blobs are content-addressed and trees are immutable.
type history struct {
	mu    sync.Mutex
	blobs map[space.BlobID][]byte
	trees map[space.CommitID]map[space.Path]space.BlobID
	head  space.CommitID
	// fail, if set, is called before each read. Its error is the result of the read.
	fail func(what string) error
}

func newHistory() *history {
	return &history{blobs: map[space.BlobID][]byte{}, trees: map[space.CommitID]map[space.Path]space.BlobID{"": {}}}
}

// commit adds a commit to the head that writes the files. A nil content deletes a file.
func (h *history) commit(files map[string][]byte) space.CommitID {
	h.mu.Lock()
	defer h.mu.Unlock()
	tree := maps.Clone(h.trees[h.head])
	for p, data := range files {
		if data == nil {
			delete(tree, space.Path(p))
			continue
		}
		b := space.BlobID(fmt.Sprintf("%x", sha1.Sum(data)))
		h.blobs[b] = data
		tree[space.Path(p)] = b
	}
	sum := sha1.New()
	fmt.Fprintln(sum, h.head, len(h.trees))
	h.head = space.CommitID(fmt.Sprintf("%x", sum.Sum(nil)))
	h.trees[h.head] = tree
	return h.head
}

func (h *history) check(what string) error {
	if h.fail == nil {
		return nil
	}
	return h.fail(what)
}

func (h *history) Head(context.Context, space.SpaceID) (space.CommitID, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.head, h.check("head")
}

func (h *history) Diff(_ context.Context, _ space.SpaceID, from, to space.CommitID) ([]space.FileChange, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.check("diff"); err != nil {
		return nil, err
	}
	a, okA := h.trees[from]
	b, okB := h.trees[to]
	if !okA || !okB {
		return nil, errors.New("no such commit")
	}
	var cs []space.FileChange
	for p, blob := range b {
		if old, ok := a[p]; !ok {
			cs = append(cs, space.FileChange{Path: p, Status: space.Added, New: blob, Size: int64(len(h.blobs[blob]))})
		} else if old != blob {
			cs = append(cs, space.FileChange{Path: p, Status: space.Modified, Old: old, New: blob, Size: int64(len(h.blobs[blob]))})
		}
	}
	for p, blob := range a {
		if _, ok := b[p]; !ok {
			cs = append(cs, space.FileChange{Path: p, Status: space.Deleted, Old: blob})
		}
	}
	slices.SortFunc(cs, func(a, b space.FileChange) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return cs, nil
}

func (h *history) Files(ctx context.Context, id space.SpaceID, at space.CommitID, _ space.Path) ([]space.Entry, error) {
	list, err := h.Diff(ctx, id, "", at)
	out := make([]space.Entry, len(list))
	for i, c := range list {
		out[i] = space.Entry{Path: c.Path, Mode: c.NewMode, Blob: c.New, Size: c.Size}
	}
	return out, err
}

func (h *history) ReadBlob(_ context.Context, _ space.SpaceID, b space.BlobID) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	data, ok := h.blobs[b]
	if !ok {
		return nil, errors.New("no such blob")
	}
	return data, h.check("blob")
}

const testSpace = space.SpaceID("s_test")

// allHits keeps weak hits in the answers.
var allHits = Options{ranking: rank.Options{MinScoreShare: -1}}

var testCollections = []Collection{{ID: testSpace, Label: "space"}}

func openIndex(t testing.TB, o Options) *Index {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	x, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// indexOf returns an index of one commit with the files.
func indexOf(t testing.TB, files map[string]string) (*Index, *history) {
	t.Helper()
	return indexOfWith(t, Options{}, files)
}

func indexOfWith(t testing.TB, o Options, files map[string]string) (*Index, *history) {
	t.Helper()
	h := newHistory()
	h.commit(toBytes(files))
	x := openIndex(t, o)
	update(t, x, h)
	return x, h
}

func toBytes(files map[string]string) map[string][]byte {
	m := map[string][]byte{}
	for p, s := range files {
		m[p] = []byte(s)
	}
	return m
}

func update(t testing.TB, x *Index, src Source) {
	t.Helper()
	if err := x.Update(t.Context(), testSpace, src); err != nil {
		t.Fatal(err)
	}
}

func search(t testing.TB, x *Index, query string) Results {
	t.Helper()
	r, err := x.Search(t.Context(), testCollections, Query{Text: query})
	if err != nil {
		t.Fatalf("search %q: %v", query, err)
	}
	return r
}

func paths(r Results) []string {
	ps := []string{}
	for _, h := range r.Hits {
		ps = append(ps, h.Path)
	}
	return ps
}

// readTar returns the files of a .tar.gz for which keep is true, without the
// first directory of their path.
func readTar(t testing.TB, file string, keep func(string) bool) map[string][]byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(path.Clean(h.Name), "/")
		if h.Typeflag != tar.TypeReg || !keep(name) {
			continue
		}
		if files[name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
	}
	if len(files) == 0 {
		t.Fatalf("%s has no files that are wanted", file)
	}
	return files
}
