package syncs_test

import (
	"context"
	"fmt"
	"strings"
	gosync "sync"
	"testing"

	"satchel/gitstore/sources/syncs"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// addUploads adds the source handbook of uploaded files.
func (b *bench) addUploads() {
	b.t.Helper()
	b.space = space.NewSpaceID()
	_, err := b.git.Create(b.ctx, b.space, space.ChangeSet{}, space.Meta{})
	must(b.t, err)
	_, err = b.Add(b.ctx, space.Source{ID: "handbook", Space: b.space, Everybody: true}, syncs.Setting{Kind: "upload"})
	must(b.t, err)
}

// upload stores a file, as a person does.
func (w *world) upload(ctx context.Context, name, content string) (space.SyncRun, error) {
	u, err := w.Receive(ctx, "handbook", name, strings.NewReader(content), func(string, int, int) {})
	if err != nil {
		return space.SyncRun{}, err
	}
	defer u.Discard()
	return w.Store(ctx, "handbook", u)
}

func TestUploadsMakeASource(t *testing.T) {
	b := newBench(t)
	b.addUploads()
	if r, err := b.Sync(b.ctx, "handbook", false, false, func(space.SyncProgress) {}); err != nil || r.State != space.SyncGone {
		t.Errorf("a sync before the first upload: %+v, %v", r, err)
	}
	for _, c := range []struct {
		name, content string
		want          map[string]string
		added, change int
	}{
		{"a.md", "# A", map[string]string{"a.md": "# A"}, 1, 0},
		{"b/c.md", "# C", map[string]string{"a.md": "# A", "b/c.md": "# C"}, 1, 0},
		{"a.md", "# Another", map[string]string{"a.md": "# Another", "b/c.md": "# C"}, 0, 1},
		{"b/c.md", "# C", map[string]string{"a.md": "# Another", "b/c.md": "# C"}, 0, 0},
	} {
		r, err := b.upload(b.ctx, c.name, c.content)
		if err != nil || r.Problem != "" || r.Added != c.added || r.Changed != c.change {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
		b.wantShown(c.want)
	}
	for _, reset := range []bool{false, true} {
		if r, err := b.Sync(b.ctx, "handbook", reset, false, func(space.SyncProgress) {}); err != nil || r.Problem != "" {
			t.Errorf("a sync: %+v, %v", r, err)
		}
		b.wantShown(map[string]string{"a.md": "# Another", "b/c.md": "# C"})
	}
	if _, err := b.Take(b.ctx, "handbook", []string{"a.md", "no.md"}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a file that is not there: %v", err)
	}
	b.wantShown(map[string]string{"a.md": "# Another", "b/c.md": "# C"})
	if r, err := b.Take(b.ctx, "handbook", []string{"a.md", "b/c.md"}); err != nil || r.Deleted != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	b.wantShown(map[string]string{})
	if st, err := b.Status(b.ctx, "handbook"); err != nil || st.Every != 0 || !st.Next.IsZero() {
		t.Errorf("it has a schedule: %+v, %v", st, err)
	}
	every := int64(3600)
	if err := b.Change(b.ctx, "handbook", syncs.Setting{Every: &every}); fault.FieldOf(err) != "every" {
		t.Errorf("an interval: %v", err)
	}
}

// Uploads at the same time wait for each other, and none is lost.
func TestUploadsAtTheSameTime(t *testing.T) {
	b := newBench(t)
	b.addUploads()
	want := map[string]string{}
	var all gosync.WaitGroup
	for i := range 5 {
		name := fmt.Sprintf("%d.md", i)
		want[name] = name
		all.Go(func() {
			if r, err := b.upload(b.ctx, name, name); err != nil || r.Problem != "" {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		})
	}
	all.Wait()
	b.wantShown(want)
}

// A source that follows an upstream takes no uploads, and too many files are refused as a whole.
func TestUploadsThatAreRefused(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", map[string]string{"a.md": "a"})
	b.add()
	if _, err := b.upload(b.ctx, "b.md", "b"); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
	if _, err := b.Receive(b.ctx, "handbook", "../b.md", strings.NewReader("b"), func(string, int, int) {}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
}

// A source that follows YouTube takes transcripts and nothing else, and asks nothing of YouTube for
// them.
func TestTranscriptsAreUploaded(t *testing.T) {
	b := newBench(t)
	b.space = space.NewSpaceID()
	_, err := b.git.Create(b.ctx, b.space, space.ChangeSet{}, space.Meta{})
	must(b.t, err)
	_, err = b.Add(b.ctx, space.Source{ID: "handbook", Space: b.space, Everybody: true}, syncs.Setting{Kind: "youtube", Settings: []byte(`{"playlist":"PL0123456789"}`)})
	must(b.t, err)
	for _, text := range []string{"First words", "Better words"} {
		r, err := b.upload(b.ctx, "A talk [dQw4w9WgXcQ].vtt", "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n"+text+"\n")
		if err != nil || r.State != space.SyncReady || r.Files != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	u, err := b.Receive(b.ctx, "handbook", "notes.md", strings.NewReader("# Notes"), func(string, int, int) {})
	must(t, err)
	defer u.Discard()
	if u.Pages() > 0 || u.Received[0].Problem == "" {
		t.Errorf("it takes notes: %+v", u.Received)
	}
}
