package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools/index/indextest"
	"satchel/tools/index/postings"
	"satchel/tools/index/segment"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// database/sql's opener goroutine ends by itself shortly after Close.
	goleak.VerifyTestMain(m)
}

// dump returns all data of a database that answers depend on, without ids and without the
// division of postings into segments. It fails the test if the inverted index contradicts
// itself.
func dump(t *testing.T, x *Index) string {
	t.Helper()
	e, err := x.entry(testSpace)
	if err != nil {
		t.Fatal(err)
	}
	d, err := x.open(t.Context(), e)
	if err != nil || d == nil {
		t.Fatal("no index", err)
	}
	s, err := d.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.End()
	db, err := sql.Open("sqlite", d.File())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var b strings.Builder
	names := map[int64]string{} // of chunks
	for _, q := range []string{
		`SELECT path || ' ' || blob || ' ' || title || ' ' || kind FROM docs ORDER BY path`,
		`SELECT c.id || ' ' || path || ' ' || c.line0 || '-' || c.line1 || ' ' || hex(substr(tokens, 1, length(tokens) - 4)) FROM chunks c JOIN docs ON docs.id = c.id >> 12 ORDER BY path, c.id & 4095`,
		`SELECT key || ' ' || value FROM meta WHERE key NOT IN ('next', 'rows', 'epoch', 'segments', 'dead', 'sum') ORDER BY key`,
		`SELECT count(*) FROM texts`,
	} {
		rows, err := db.Query(q)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(q, "tokens") {
				id, rest, _ := strings.Cut(line, " ")
				n, _ := strconv.ParseInt(id, 10, 64)
				names[n] = strings.Join(strings.Fields(rest)[:2], " ")
				line = rest
			}
			b.WriteString(line + "\n")
		}
		rows.Close()
	}
	var terms []string
	dfs := map[string]int64{}
	if err := s.EachTerm(t.Context(), "", func(term string, df int64) bool {
		terms, dfs[term] = append(terms, term), df
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(terms) {
		t.Error("the dictionary is not in order")
	}
	for _, term := range terms {
		var in []string
		for i, p := range s.View.Parts {
			if err := s.Each(t.Context(), term, i, func(ps []segment.Posting) {
				for _, post := range ps {
					if c := p.Segment.Chunks[post.Chunk]; !p.Dead.Has(int(post.Chunk)) {
						in = append(in, fmt.Sprint(names[postings.ChunkID(c)], c.Length, post.Counts))
					}
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		if int64(len(in)) != dfs[term] {
			t.Errorf("%q is said to be in %d chunks and is in %d", term, dfs[term], len(in))
		}
		slices.Sort(in)
		fmt.Fprintln(&b, term, in)
	}
	return b.String()
}

// segments returns how many segments an index has.
func segments(t *testing.T, x *Index) int {
	t.Helper()
	e, _ := x.entry(testSpace)
	d, err := x.open(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.End()
	return len(s.View.Parts)
}

// randomChange changes, empties or deletes a few pages and adds a few.
func randomChange(rng *rand.Rand, g *indextest.Generator) map[string][]byte {
	change := map[string][]byte{}
	for range 1 + rng.IntN(4) {
		p := fmt.Sprintf("knowledge/%s/page-%d.md", g.Words[rng.IntN(5)], rng.IntN(8))
		switch rng.IntN(4) {
		case 0:
			change[p] = nil
		case 1:
			change[p] = []byte{}
		default:
			change[p] = g.Page(200 + rng.IntN(9000))
		}
	}
	return change
}

// An index that follows commits one by one has the same content and answers as a rebuilt
// one, after any additions, changes and deletions, however the segments were merged and
// even if they did not fit into memory.
func TestFollowingCommitsGivesWhatARebuildGives(t *testing.T) {
	for _, o := range []Options{{}, {storage: postings.Options{BuildBytes: 40_000, CacheBytes: 4096}}} {
		t.Run(fmt.Sprint("memory for a build: ", o.storage.BuildBytes), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, 7))
			g := indextest.NewGenerator(7)
			h := newHistory()
			h.commit(g.Pages(20, 6000))
			o.Dir = t.TempDir()
			followed := openIndex(t, o)
			update(t, followed, h)
			merges, before := 0, 1
			for range 40 {
				h.commit(randomChange(rng, g))
				update(t, followed, h)
				n := segments(t, followed)
				if n > 3*4+2 {
					t.Fatalf("%d segments", n)
				}
				if n < before {
					merges++
				}
				before = n
			}
			if merges == 0 {
				t.Error("nothing was merged")
			}
			have := dump(t, followed)
			if have != dump(t, openIndex(t, o)) {
				t.Error("what is in memory differs from what is on disk")
			}
			o.Dir = t.TempDir()
			fresh := openIndex(t, o)
			update(t, fresh, h)
			if b := dump(t, fresh); have != b {
				t.Errorf("followed index has %d bytes, rebuilt one %d; they differ", len(have), len(b))
			}
			for range 60 {
				query := g.Sentence(1 + rng.IntN(5))
				switch rng.IntN(5) {
				case 0:
					query = `"` + query + `"`
				case 1:
					query += " -" + g.Word()
				case 2:
					query += fmt.Sprintf(" path:knowledge/%s/**", g.Words[rng.IntN(5)])
				case 3:
					query += ` -"` + g.Sentence(2) + `"`
				}
				a, err := followed.Rank(t.Context(), testCollections, Query{Text: query}, 0)
				b, err2 := fresh.Rank(t.Context(), testCollections, Query{Text: query}, 0)
				if err := errors.Join(err, err2); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(a, b) {
					t.Errorf("%s: %v\nrebuilt: %v", query, a, b)
				}
			}
		})
	}
}

// Reread reads files again even if their blobs are unchanged, and reports the paths that
// the head does not have.
func TestReread(t *testing.T) {
	x, h := indexOf(t, map[string]string{"a.md": "alpha", "b.md": "beta"})
	before := dump(t, x)
	execSQL(t, dbFiles(t, x.opts.Dir)[0], `UPDATE docs SET title = 'wrong'`)
	h.commit(map[string][]byte{"b.md": nil, "c.md": []byte("gamma")})
	h.commit(map[string][]byte{"b.md": []byte("beta"), "c.md": nil})
	absent, err := x.Reread(t.Context(), testSpace, h, []space.Path{"a.md", "b.md", "nowhere.md", "a.md"})
	if err != nil || !slices.Equal(absent, []space.Path{"nowhere.md"}) {
		t.Fatal(absent, err)
	}
	tail := func(s string) string { return s[:strings.Index(s, "commit ")] }
	if after := dump(t, x); tail(after) != tail(before) {
		t.Errorf("%s\nwas\n%s", after, before)
	}
	if st, err := x.Status(t.Context(), testSpace); err != nil || st.Commit != h.head {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestUpdateThatFailsChangesNothing(t *testing.T) {
	x, h := indexOf(t, map[string]string{"a.md": "alpha", "b.md": "beta"})
	before, first := dump(t, x), h.head
	reads := 0
	h.fail = func(what string) error {
		if what == "blob" {
			if reads++; reads == 2 {
				return errors.New("disk is gone")
			}
		}
		return nil
	}
	h.commit(map[string][]byte{"a.md": []byte("gamma"), "b.md": []byte("delta")})
	if err := x.Update(t.Context(), testSpace, h); err == nil {
		t.Fatal("no error")
	}
	if dump(t, x) != before {
		t.Error("a failed update changed the index")
	}
	r := search(t, x, "alpha")
	if len(r.Hits) != 1 || r.IndexCommit != first || len(r.Notes) == 0 {
		t.Errorf("the old state does not answer, or does not say that it is old: %+v", r)
	}
	h.fail = nil
	update(t, x, h)
	if r := search(t, x, "gamma"); len(r.Hits) != 1 || r.IndexCommit != h.head || len(r.Notes) != 0 {
		t.Errorf("%+v", r)
	}
}

// During updates and rebuilds, queries still run, each over exactly one commit.
func TestReadersAreNeverBlockedNorTorn(t *testing.T) {
	h := newHistory()
	write := func(n int) {
		files := map[string][]byte{}
		for i := range 20 {
			files[fmt.Sprintf("p%d.md", i)] = fmt.Appendf(nil, "# Page\n\ncommon generation%d\n", n)
		}
		h.commit(files)
	}
	write(0)
	x := openIndex(t, Options{})
	update(t, x, h)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				r, err := x.Search(context.Background(), testCollections, Query{Text: "common limit:20", MaxTokens: 20_000})
				if err != nil {
					t.Error(err)
					return
				}
				seen := map[string]bool{}
				for _, hit := range r.Hits {
					seen[hit.Text] = true
				}
				if r.Total != 20 || len(seen) != 1 {
					t.Errorf("%d documents of %d generations in one answer", r.Total, len(seen))
					return
				}
			}
		})
	}
	for n := range 12 {
		write(n + 1)
		var err error
		if n%3 == 2 {
			err = x.Rebuild(t.Context(), testSpace, h)
		} else {
			err = x.Update(t.Context(), testSpace, h)
		}
		if err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
}

// Drop also removes the unfinished files of a killed process, even if the collection has
// not been opened since.
func TestDropLeavesNothingUnfinished(t *testing.T) {
	x := openIndex(t, Options{})
	other := x.fileName(testSpace+"2", 1)
	for _, name := range []string{x.fileName(testSpace, 1) + ".new", x.fileName(testSpace, 1) + ".new-journal", x.fileName(testSpace, 2), x.fileName(testSpace, 2) + "-wal", other} {
		if err := os.WriteFile(name, []byte("private"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Drop(t.Context(), testSpace); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(x.opts.Dir, "*.db*")); err != nil || len(left) != 1 || left[0] != other {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestDropAndNames(t *testing.T) {
	x, h := indexOf(t, map[string]string{"a.md": "alpha"})
	if err := x.Drop(t.Context(), testSpace); err != nil {
		t.Fatal(err)
	}
	if files := dbFiles(t, x.opts.Dir); len(files) != 0 {
		t.Errorf("left over: %v", files)
	}
	for _, id := range []space.SpaceID{"", "../escape", "a/b", "A", ".hidden", "a.b", space.SpaceID(strings.Repeat("a", 200))} {
		if err := x.Update(t.Context(), id, h); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v", id, err)
		}
	}
	update(t, x, h)
	if got := paths(search(t, x, "alpha")); len(got) != 1 {
		t.Errorf("%v after being indexed again", got)
	}
}

func TestConflictCopiesAreLeftOut(t *testing.T) {
	x, _ := indexOf(t, map[string]string{"a.md": "apple", "a.conflict-0123456789.md": "apple", "d.conflict-0123456789/b.md": "apple", "a.conflict-of-interest.md": "apple"})
	got := paths(search(t, x, "apple"))
	slices.Sort(got)
	if !slices.Equal(got, []string{"a.conflict-of-interest.md", "a.md"}) {
		t.Errorf("%v", got)
	}
}

func TestEmptySpace(t *testing.T) {
	x := openIndex(t, Options{})
	h := newHistory()
	update(t, x, h)
	if r := search(t, x, "anything"); r.Total != 0 || !slices.Equal(r.Notes, []string{"There is no page here yet."}) {
		t.Errorf("%+v", r)
	}
	h.commit(map[string][]byte{"a.md": []byte("anything")})
	update(t, x, h)
	if r := search(t, x, "anything"); r.Total != 1 {
		t.Errorf("%+v", r)
	}
}

// After all pages are deleted, a segment without rows may remain, and the next one begins
// at the same id. Cached terms of one are not used for the other.
func TestATermIsFoundAgainBesideAnEmptySegment(t *testing.T) {
	h := newHistory()
	x := openIndex(t, Options{})
	for _, files := range []map[string][]byte{
		{"1.md": []byte("# Page\n\nKoalas.\n"), "2.md": []byte("# Page\n\nQuokkas.\n")},
		{"1.md": nil, "2.md": nil},
		{"3.md": []byte("# Page\n\nQuokkas.\n")},
		{"3.md": nil},
		{"4.md": []byte("# Page\n\nQuokkas.\n")},
		{"4.md": nil, "5.md": []byte("# Page\n\nQuokkas.\n")},
	} {
		h.commit(files)
		update(t, x, h)
		want := ""
		for p, b := range h.trees[h.head] {
			if strings.Contains(string(h.blobs[b]), "Quokkas") {
				want = string(p)
			}
		}
		for range 2 {
			if got := strings.Join(paths(search(t, x, "quokkas")), " "); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}
