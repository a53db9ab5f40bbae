package syncs_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/sources/syncs"
	"satchel/gitstore/sources/upstream"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// next returns the time of the next sync.
func (b *bench) next() time.Time {
	b.t.Helper()
	s, ok := b.Get("handbook")
	if !ok {
		b.t.Fatal("there is no sync")
	}
	return s.Next
}

// A push starts the sync of its branch soon, and at most one a minute.
func TestAPushStartsASync(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", pages(1, "one"))
	b.add()
	b.sync()
	planned := b.next()
	b.Pushed(upstream.Push{Repository: b.server.URL("docs"), Branch: "other"})
	b.Pushed(upstream.Push{Repository: b.server.URL("other"), Branch: "main", Default: true})
	if got := b.next(); !got.Equal(planned) {
		t.Errorf("another branch moves the sync from %v to %v", planned, got)
	}
	push := upstream.Push{Repository: b.server.URL("docs"), Branch: "main", Default: true}
	b.Pushed(push)
	st, err := b.Status(b.ctx, "handbook")
	must(t, err)
	if soon := st.Checked.Add(time.Minute); !st.Next.Equal(soon) {
		t.Errorf("the next sync is at %v, not %v", st.Next, soon)
	}
	never := int64(0)
	must(t, b.Change(b.ctx, "handbook", syncs.Setting{Every: &never}))
	b.Pushed(push)
	if got := b.next(); !got.IsZero() {
		t.Errorf("a source for requests is synced at %v", got)
	}
}

// An entry that leaves the configuration file stops the schedule, and its source stays.
func TestASourceThatLeftTheConfiguration(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", pages(2, "one"))
	b.add()
	b.sync()
	must(t, b.SetOrigin(b.ctx, "handbook", space.OriginLeft))
	b.Pushed(upstream.Push{Repository: b.server.URL("docs"), Branch: "main", Default: true})
	if got := b.next(); !got.IsZero() {
		t.Errorf("the next sync is at %v", got)
	}
	if r := b.sync(); r.State != space.SyncUnchanged || !b.next().IsZero() {
		t.Errorf("a sync on request: %+v, next %v", r, b.next())
	}
	b.wantShown(upstreamFiles(b.server))
	if st := b.Stats(); len(st.Left) != 1 || st.Oldest != 0 {
		t.Errorf("%+v", st)
	}
	must(t, b.SetOrigin(b.ctx, "handbook", space.OriginFile))
	if b.next().IsZero() {
		t.Error("the entry is back, and the source is not synced")
	}
}

// A source whose publication ended is not synced any more. An admin can remove it.
func TestASourceEndsWithItsPerson(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", pages(2, "one"))
	b.add()
	b.sync()
	must(t, b.EndSource(b.ctx, "handbook"))
	s, _ := b.Get("handbook")
	if s.State != space.SyncEnded || s.Problem == "" || !s.Next.IsZero() {
		t.Errorf("%+v", s)
	}
	must(t, b.EndSource(b.ctx, "other"))
	must(t, b.SetOrigin(b.ctx, "handbook", space.OriginFile))
	if !b.next().IsZero() {
		t.Error("an ended source is synced")
	}
	must(t, b.Remove(b.ctx, "handbook"))
	if _, ok := b.Get("handbook"); ok {
		t.Error("it is still there")
	}
}

// The start ends a sync whose publication ended while the process stopped.
func TestASyncWithoutItsSourceEndsAtTheStart(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", pages(2, "one"))
	b.add()
	b.sync()
	must(t, b.sources.Remove(b.ctx, b.space, "handbook"))
	b.Start()
	if s, _ := b.Get("handbook"); s.State != space.SyncEnded || !s.Next.IsZero() {
		t.Errorf("%+v", s)
	}
}

// Each run is reported with its times, and the totals name the sources that fail.
func TestRunsAreCounted(t *testing.T) {
	var runs []space.SyncRun
	dir := t.TempDir()
	server := remotetest.New(t, remotetest.Options{})
	server.Create("docs")
	w, err := openWorld(t.Context(), dir, "sqlite:"+dir+"/x.db", "sqlite:"+dir+"/workflows.db", testenv.NeedProgram(t, "git"), func(o *syncs.Options) {
		o.Ended = func(r space.SyncRun) { runs = append(runs, r) }
	})
	must(t, err)
	t.Cleanup(func() { must(t, w.close()) })
	b := &bench{world: w, t: t, ctx: t.Context(), server: server}
	server.Push("docs", "main", pages(2, "one"))
	b.add()
	b.sync()
	must(t, b.Change(b.ctx, "handbook", syncs.Setting{Settings: []byte(`{"url": "` + server.URL("absent") + `"}`), Trusted: true}))
	b.sync()
	if len(runs) != 2 || runs[0].State != space.SyncReady || runs[0].Started.IsZero() || runs[0].Ended.Before(runs[0].Started) || runs[0].Files != 2 {
		t.Errorf("%+v", runs)
	}
	st := b.Stats()
	if st.Syncs != 1 || st.Running != 0 || len(st.Failing) != 1 || st.Failing[0].Source != "handbook" || st.States[runs[1].State] != 1 || st.Oldest < 0 {
		t.Errorf("%+v", st)
	}
}

// A private repository is read with the token of the person who added the source.
func TestTokensAreAskedForThePersonWhoAddedTheSource(t *testing.T) {
	type request struct {
		by               space.UserID
		host, repository string
	}
	var asked []request
	dir := t.TempDir()
	w, err := openWorld(t.Context(), dir, "sqlite:"+dir+"/x.db", "sqlite:"+dir+"/workflows.db", testenv.NeedProgram(t, "git"), func(o *syncs.Options) {
		o.Token = func(_ context.Context, by space.UserID, host, repository string) (string, error) {
			asked = append(asked, request{by, host, repository})
			return "", fault.New(fault.Forbidden, "Not here.")
		}
	})
	must(t, err)
	t.Cleanup(func() { must(t, w.close()) })
	setting := syncs.Setting{Kind: "github", Settings: []byte(`{"repo": "acme/wiki", "host": "github.example.com"}`), By: "u_ann"}
	_, err = w.Preview(t.Context(), setting, func(space.SyncProgress) {})
	wantCode(t, "ann's preview", err, fault.Forbidden)
	setting.By, setting.Trusted = "", true
	_, err = w.Preview(t.Context(), setting, func(space.SyncProgress) {})
	wantCode(t, "the operator's preview", err, fault.Forbidden)
	if want := []request{{"u_ann", "github.example.com", "acme/wiki"}, {"", "github.example.com", "acme/wiki"}}; !slices.Equal(asked, want) {
		t.Errorf("%+v", asked)
	}
}
