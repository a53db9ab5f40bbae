package syncs_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"satchel/gitstore/sources/syncs"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// slowSite is a site that does not answer. asked gets its first request.
func slowSite(t *testing.T) (site *httptest.Server, asked chan *http.Request) {
	t.Helper()
	asked = make(chan *http.Request, 1)
	release := make(chan struct{})
	site = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r:
		default:
		}
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}))
	t.Cleanup(func() { close(release); site.Close() })
	return site, asked
}

// newSlowBench is a bench whose only place is held by the source slow until the test ends.
func newSlowBench(t *testing.T) *bench {
	t.Helper()
	b, asked := newSlowSync(t, func(*syncs.Options) {})
	_ = testenv.Receive(t, "the request to the slow site", asked)
	return b
}

// newSlowSync is a bench whose source slow begins to sync. asked gets the first request to its site.
func newSlowSync(t *testing.T, change func(*syncs.Options)) (b *bench, asked chan *http.Request) {
	t.Helper()
	site, asked := slowSite(t)
	b = newBenchWith(t, func(o *syncs.Options) {
		o.AtOnce, o.Env.HTTP = 1, site.Client()
		change(o)
	})
	id := space.NewSpaceID()
	_, err := b.git.Create(b.ctx, id, space.ChangeSet{}, space.Meta{})
	must(t, err)
	_, err = b.Add(b.ctx, space.Source{ID: "slow", Space: id, Everybody: true}, syncs.Setting{Kind: "web", Settings: []byte(`{"url": "` + site.URL + `"}`), Trusted: true})
	must(t, err)
	must(t, b.Begin(b.ctx, "slow", false, false))
	return b, asked
}

// Slow sites hold no place of uploads.
func TestUploadsDoNotWaitForSlowSites(t *testing.T) {
	b := newSlowBench(t)
	b.addUploads()
	if r, err := b.upload(b.ctx, "a.md", "# A"); err != nil || r.Problem != "" {
		t.Errorf("%+v, %v", r, err)
	}
	b.wantShown(map[string]string{"a.md": "# A"})
}

// A sync that waits for a place can be canceled.
func TestAWaitingSyncIsCanceled(t *testing.T) {
	b := newSlowBench(t)
	b.server.Push("docs", "main", pages(1, "one"))
	b.add()
	must(t, b.Begin(b.ctx, "handbook", false, false))
	must(t, b.Cancel(b.ctx, "handbook"))
	if st, err := b.Status(b.ctx, "handbook"); err != nil || st.Running != nil || len(st.Runs) != 1 || st.Runs[0].State != space.SyncCanceled {
		t.Errorf("%+v, %v", st, err)
	}
}

// A sync ends when its time is over. Its status says so, and it is not tried again at once.
func TestASyncHasATimeLimit(t *testing.T) {
	began := time.Now()
	b, _ := newSlowSync(t, func(o *syncs.Options) { o.MaxTime = time.Millisecond })
	testenv.WaitFor(t, "the end of the sync", func() bool {
		st, ok := b.Get("slow")
		return ok && st.State != space.SyncNew
	})
	if st, _ := b.Get("slow"); st.State != space.SyncRefused || st.Problem == "" || st.Next.Before(began.Add(time.Hour)) {
		t.Errorf("%+v", st)
	}
}
