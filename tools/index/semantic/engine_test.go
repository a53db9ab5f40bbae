package semantic_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/internal/testenv"
	"satchel/tools/index/semantic"
	"satchel/tools/index/semantic/endpoint"
	"satchel/tools/index/semantic/semantictest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// shelf is a Source whose documents have one chunk for each paragraph.
type shelf struct {
	mu    sync.Mutex
	docs  map[int64]string
	state semantic.State
	reads int
	// reading, unless it is nil, is called with the context of each call of Chunks
	reading func(context.Context)
}

func (s *shelf) put(commit string, docs map[int64]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.docs, s.state = docs, semantic.State{Fingerprint: "1", Commit: commit}
}

func key(text string) uint64 {
	k := uint64(14695981039346656037)
	for _, b := range []byte(text) {
		k = (k ^ uint64(b)) * 1099511628211
	}
	return k
}

func (s *shelf) Docs(context.Context, string) (docs []semantic.Doc, _ semantic.State, ok bool, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, text := range s.docs {
		docs = append(docs, semantic.Doc{ID: id, Key: key(text)})
	}
	slices.SortFunc(docs, func(a, b semantic.Doc) int { return int(a.ID - b.ID) })
	return docs, s.state, s.docs != nil, nil
}

func (s *shelf) Chunks(ctx context.Context, _ string, d semantic.Doc) (chunks []semantic.Chunk, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.reading != nil {
		s.reading(ctx)
	}
	if s.docs[d.ID] == "" {
		return nil, nil
	}
	for i, p := range strings.Split(s.docs[d.ID], "\n\n") {
		chunks = append(chunks, semantic.Chunk{ID: d.ID<<semantic.ChunkBits | int64(i), Text: p})
	}
	return chunks, nil
}

// pages returns n documents of two chunks. Each chunk is about one animal.
func pages(n int) map[int64]string {
	docs := map[int64]string{}
	for i := range n {
		docs[int64(i+1)] = fmt.Sprintf("animal%d lives in forest%d\n\nwhat animal%d eats is seeds%d", i, i, i, i)
	}
	return docs
}

type fixture struct {
	t      *testing.T
	server *semantictest.Server
	shelf  *shelf
	dir    string
	id     semantic.Identity
	o      semantic.Options
	e      *semantic.Engine
	emb    *endpoint.Embeddings
}

// newFixture returns an engine that is not open yet. It does not retry a failed run, so that no
// request is under way after a failure. Tests that count requests rely on this.
func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, server: semantictest.New(t, 64), shelf: &shelf{}, dir: t.TempDir(), id: semantic.Identity{Model: "trigrams"}}
	f.o = semantic.Options{QueryWait: time.Hour, RetryAfter: time.Hour, BreakFor: time.Hour, Batch: 8, Slice: time.Hour}
	t.Cleanup(f.close)
	return f
}

func (f *fixture) open() *semantic.Engine {
	f.t.Helper()
	var err error
	f.emb, err = endpoint.NewEmbeddings(endpoint.EmbeddingOptions{Identity: f.id, Options: endpoint.Options{URL: f.server.URL, Key: f.server.Key, Backoff: time.Millisecond, Timeout: time.Hour, MaxWait: time.Millisecond}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.o.Dir, f.o.Embedder = f.dir, f.emb
	if f.e, err = semantic.Open(f.t.Context(), f.shelf, f.o); err != nil {
		f.t.Fatal(err)
	}
	return f.e
}

func (f *fixture) close() {
	if f.e != nil {
		if err := f.e.Close(); err != nil {
			f.t.Error(err)
		}
		f.emb.Close()
		f.e = nil
	}
}

// until waits for a status.
func (f *fixture) until(what string, ok func(semantic.Status) bool) semantic.Status {
	f.t.Helper()
	var s semantic.Status
	defer func() {
		if f.t.Failed() {
			f.t.Logf("%+v", s)
		}
	}()
	testenv.WaitFor(f.t, what, func() bool {
		s = f.e.Status("space")
		return ok(s)
	})
	return s
}

func (f *fixture) at(commit string) semantic.Status {
	f.t.Helper()
	return f.until("at "+commit, func(s semantic.Status) bool { return s.Commit == commit && !s.Running })
}

// nearest returns the documents nearest to a text.
func (f *fixture) nearest(text string, docs []int64, k int) []int64 {
	f.t.Helper()
	v := f.e.View("space")
	if v == nil {
		f.t.Fatal("nothing answers")
	}
	defer v.Release()
	q, err := f.e.Ask(v.Identity(), text).Wait(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	near, err := v.Nearest(q, docs, k)
	if err != nil {
		f.t.Fatal(err)
	}
	var ids []int64
	for _, n := range near {
		ids = append(ids, n.Doc)
	}
	return ids
}

func TestFindsByMeaningWithinTheFilter(t *testing.T) {
	f := newFixture(t)
	f.shelf.put("c1", pages(50))
	f.open().Changed("space")
	s := f.at("c1")
	if s.Done != 100 || s.Total != 100 || s.Dimensions != 64 || s.Answering != "trigrams" || s.Err != nil {
		t.Errorf("status %+v", s)
	}
	if got := f.nearest("what animal7 eats is seeds7", nil, 3); got[0] != 8 || len(got) != 3 {
		t.Errorf("nearest are %v", got)
	}
	if got := f.nearest("what animal7 eats is seeds7", []int64{3, 5, 40}, 10); len(got) != 3 || slices.Contains(got, 8) {
		t.Errorf("the filter lets %v through", got)
	}
	if got := f.nearest("animal", []int64{}, 10); len(got) != 0 {
		t.Errorf("a filter that nothing meets lets %v through", got)
	}
}

func TestEmbedsOnlyWhatChanged(t *testing.T) {
	f := newFixture(t)
	docs := pages(30)
	f.shelf.put("c1", docs)
	f.open().Changed("space")
	f.at("c1")
	before := len(f.server.Texts())
	next := pages(30)
	next[4] = next[4] + "\n\na third passage"
	delete(next, 9)
	f.shelf.put("c2", next)
	f.e.Changed("space")
	f.at("c2")
	if got := f.server.Texts()[before:]; !slices.Equal(got, []string{"a third passage"}) {
		t.Errorf("embedded %q", got)
	}
	if got := f.nearest("animal8 lives in forest8", nil, 50); slices.Contains(got, 9) {
		t.Error("a deleted document is found")
	}
	// A rebuild gives documents other ids. A new fingerprint makes the engine read all
	// documents.
	moved := map[int64]string{}
	for id, text := range next {
		moved[id+1000] = text
	}
	f.shelf.put("c2", moved)
	f.shelf.state.Fingerprint = "2"
	f.shelf.state.Commit = "c3"
	before = len(f.server.Texts())
	f.e.Changed("space")
	f.at("c3")
	if got := f.server.Texts()[before:]; len(got) != 0 {
		t.Errorf("a rebuild embeds %q again", got)
	}
	if got := f.nearest("what animal7 eats is seeds7", nil, 1); got[0] != 1008 {
		t.Errorf("nearest is %v", got)
	}
}

func TestResumesAfterARestart(t *testing.T) {
	f := newFixture(t)
	f.shelf.put("c1", pages(40))
	f.o.Parallel = 1
	n := 0
	f.server.Break(func(w http.ResponseWriter, r *http.Request, texts []string) bool {
		n++
		if n > 5 {
			w.WriteHeader(http.StatusUnauthorized) // fails at once, without a retry
			return true
		}
		return false
	})
	f.open().Changed("space")
	s := f.until("failed", func(s semantic.Status) bool { return s.Err != nil })
	if s.Done == 0 || s.Done >= 80 || s.Answering != "" {
		t.Errorf("status %+v", s)
	}
	f.close()
	have := len(f.server.Texts())
	f.server.Break(nil)
	f.open().Changed("space")
	f.at("c1")
	if got := len(f.server.Texts()); got != 80 {
		t.Errorf("embedded %d texts in all, %d of them before the restart, and 80 are there", got, have)
	}
	f.close()
	// The file answers at once, and only the query is embedded.
	f.open()
	if got := f.nearest("what animal7 eats is seeds7", nil, 1); got[0] != 8 {
		t.Errorf("nearest is %v", got)
	}
}

// If Close ends a run, the run does not write a file without some documents.
func TestCloseDuringARun(t *testing.T) {
	f := newFixture(t)
	docs := pages(4)
	docs[0] = "" // the document has no chunk, so only the end of the loop can notice the end of the run
	f.shelf.put("c1", docs)
	reading := make(chan struct{})
	f.shelf.reading = func(ctx context.Context) {
		close(reading)
		<-ctx.Done()
		f.shelf.reading = nil
	}
	f.open().Changed("space")
	testenv.Receive(t, "the first document", reading)
	f.close()
	f.open().Changed("space")
	f.at("c1")
	if got := f.nearest("what animal1 eats is seeds1", nil, 1); !slices.Equal(got, []int64{2}) {
		t.Errorf("nearest is %v", got)
	}
}

func TestAnotherModelTakesOverWhenItIsWhole(t *testing.T) {
	f := newFixture(t)
	f.shelf.put("c1", pages(20))
	f.open().Changed("space")
	f.at("c1")
	f.close()
	f.id.Model = "better"
	blocked := make(chan struct{})
	f.server.Break(func(w http.ResponseWriter, r *http.Request, texts []string) bool {
		if len(texts) > 1 { // the passages of the new model wait, but queries do not
			select {
			case <-blocked:
			case <-r.Context().Done():
			}
		}
		return false
	})
	f.open().Changed("space")
	f.until("running", func(s semantic.Status) bool { return s.Running })
	if got := f.nearest("what animal7 eats is seeds7", nil, 1); got[0] != 8 {
		t.Errorf("the old vectors say %v", got)
	}
	if s := f.e.Status("space"); s.Answering != "trigrams" || s.Model != "better" {
		t.Errorf("status %+v", s)
	}
	close(blocked)
	f.until("switched", func(s semantic.Status) bool { return s.Answering == "better" })
	if got := f.nearest("what animal7 eats is seeds7", nil, 1); got[0] != 8 {
		t.Errorf("the new vectors say %v", got)
	}
	f.until("the old file is gone", func(semantic.Status) bool {
		files, err := filepath.Glob(filepath.Join(f.dir, "*.vec"))
		return err == nil && len(files) == 1
	})
}

func TestTheModelBehindTheNameChanges(t *testing.T) {
	f := newFixture(t)
	f.o.RetryAfter = time.Millisecond
	f.shelf.put("c1", pages(20))
	f.open().Changed("space")
	f.at("c1")
	f.server.Resize(96)
	next := pages(21)
	f.shelf.put("c2", next)
	f.e.Changed("space")
	if s := f.at("c2"); s.Dimensions != 96 {
		t.Errorf("status %+v", s)
	}
	if got := f.nearest("what animal20 eats is seeds20", nil, 1); got[0] != 21 {
		t.Errorf("nearest is %v", got)
	}
}

func TestAVectorOfAnotherLengthIsNoAnswer(t *testing.T) {
	f := newFixture(t)
	f.shelf.put("c1", pages(3))
	f.open().Changed("space")
	f.at("c1")
	f.server.Resize(32)
	v := f.e.View("space")
	defer v.Release()
	q, err := f.e.Ask(v.Identity(), "anything").Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Nearest(q, nil, 1); !errors.Is(err, semantic.ErrDimensions) {
		t.Errorf("got %v", err)
	}
}

func TestADamagedFileIsMadeAgain(t *testing.T) {
	f := newFixture(t)
	f.shelf.put("c1", pages(10))
	f.open().Changed("space")
	f.at("c1")
	f.close()
	files, _ := filepath.Glob(filepath.Join(f.dir, "*.vec"))
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "cache.db"), []byte("no database at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.open()
	if v := f.e.View("space"); v != nil {
		t.Error("a damaged file answers")
		v.Release()
	}
	f.e.Changed("space")
	f.at("c1")
	if got := f.nearest("animal3 lives in forest3", nil, 1); got[0] != 4 {
		t.Errorf("nearest is %v", got)
	}
}

// TestDropForgets searches every file for the dropped text.
func TestDropForgets(t *testing.T) {
	f := newFixture(t)
	f.shelf.put("c1", pages(10))
	f.open().Changed("space")
	f.at("c1")
	v := f.e.View("space") // a search is under way
	if err := f.e.Drop(t.Context(), "space"); err != nil {
		t.Fatal(err)
	}
	v.Release()
	files, _ := filepath.Glob(filepath.Join(f.dir, "*.vec"))
	if len(files) != 0 {
		t.Errorf("%v stay", files)
	}
	before := len(f.server.Texts())
	f.e.Changed("space")
	f.at("c1")
	if got := len(f.server.Texts()) - before; got != 20 {
		t.Errorf("the cache still had %d of 20 texts", 20-got)
	}
}
