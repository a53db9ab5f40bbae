package remotes_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/space"
)

// conflict makes the next merge keep both versions of a file, and merges.
func (b *bench) conflict(id space.SpaceID, name string) {
	b.t.Helper()
	b.git.set(func() {
		b.git.spaces[id].remote = max(b.git.spaces[id].head, b.git.spaces[id].remote) + 1
		b.git.merged = gitstore.Integration{How: gitstore.Merged, Commit: space.Commit{
			ID: commit(9), Conflicts: []space.Conflict{{Path: space.Path(name), Kept: space.Path(name + ".conflict-0123456789")}},
		}}
	})
	if _, err := b.Sync(b.t.Context(), id, nil); err != nil {
		b.t.Fatal(err)
	}
	b.git.set(func() { b.git.merged = gitstore.Integration{} })
}

// Everybody gets a notice once, in any process. The number of notices is limited.
func TestNotices(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		b := benchOn(t, db, func(o *remotes.Options) { o.Notices = 3 })
		b.start()
		id := b.remote()
		b.conflict(id, "a.md")
		want := func(who space.UserID, names ...string) {
			t.Helper()
			got := b.Notices(id, who)
			ok := len(got) == len(names)
			for i := range min(len(got), len(names)) {
				ok = ok && strings.Contains(got[i], names[i])
			}
			if !ok {
				t.Errorf("%s is told %q, want %q", who, got, names)
			}
		}
		want("ann", "a.md")
		want("ann")
		b.conflict(id, "b.md")
		want("ann", "b.md")
		b.close()
		b.open()
		b.start()
		want("ann")
		want("bob", "a.md", "b.md")
		for i := range 5 {
			b.conflict(id, fmt.Sprintf("c%d.md", i))
		}
		want("ann", "c2.md", "c3.md", "c4.md")
		var rows int64
		if err := db.Read(t.Context()).Table("remotes_notices").Count(&rows).Error; err != nil || rows != 3 {
			t.Errorf("%d rows, %v", rows, err)
		}
		if st := b.status(id); len(st.Notes) != 3 || !strings.Contains(st.Notes[0].Text, "c4.md") || time.Since(st.Notes[0].At) > time.Hour {
			t.Errorf("%q", st.Notes)
		}
		// Notices belong to the space, so they stay if its remote is changed and removed.
		again := "https://git.example/" + string(id) + "/"
		if err := b.Set(t.Context(), remotes.SetRequest{Space: id, URL: again}); err != nil {
			t.Fatal(err)
		}
		want("ann")
		want("bob", "c2.md", "c3.md", "c4.md")
		if err := b.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		want("ann")
		want("carl", "c2.md", "c3.md", "c4.md")
		want("carl")
		b.close()
		b.open()
		b.start()
		want("ann")
		want("carl")
		want("dora", "c2.md", "c3.md", "c4.md")
		if st := b.status(id); st.State != space.RemoteLocal || len(st.Notes) != 3 {
			t.Errorf("%+v", st)
		}
		// Nothing stays of a deleted space.
		b.close()
		b.open()
		b.start()
		b.git.set(func() { delete(b.git.spaces, id) })
		if err := b.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		want("emil")
		for _, table := range []string{"remotes", "remotes_synced", "remotes_notices", "remotes_seen"} {
			if err := db.Read(t.Context()).Table(table).Count(&rows).Error; err != nil || rows != 0 {
				t.Errorf("%s has %d rows, %v", table, rows, err)
			}
		}
	})
}

// A person who comes back after a long time does not get old notices.
func TestOldNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(o *remotes.Options) { o.NoticeAge = 24 * time.Hour })
		b.start()
		id := b.remote()
		b.conflict(id, "a.md")
		time.Sleep(25 * time.Hour)
		if got := b.Notices(id, "ann"); len(got) != 0 || len(b.status(id).Notes) != 0 {
			t.Errorf("%q", got)
		}
		b.conflict(id, "b.md")
		if got := b.Notices(id, "ann"); len(got) != 1 {
			t.Errorf("%q", got)
		}
		// A notice also expires if no new notice replaces it.
		if err := b.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(25 * time.Hour)
		if got := b.Notices(id, "bob"); len(got) != 0 || len(b.status(id).Notes) != 0 {
			t.Errorf("%q", got)
		}
		b.close()
		b.open()
		b.start()
		for _, table := range []string{"remotes_notices", "remotes_seen"} {
			var rows int64
			if err := b.o.DB.Read(t.Context()).Table(table).Count(&rows).Error; err != nil || rows != 0 {
				t.Errorf("%s has %d rows, %v", table, rows, err)
			}
		}
	})
}

// A Status contains the newest notices.
func TestNotesAreFew(t *testing.T) {
	b := newBench(t, nil)
	b.start()
	id := b.remote()
	for i := range 8 {
		b.conflict(id, fmt.Sprintf("c%d.md", i))
	}
	st := b.status(id)
	if len(st.Notes) != 5 || !strings.Contains(st.Notes[0].Text, "c7.md") || !strings.Contains(st.Notes[4].Text, "c3.md") {
		t.Errorf("%q", st.Notes)
	}
	if got := b.Notices(id, "ann"); len(got) != 8 {
		t.Errorf("%q", got)
	}
}
