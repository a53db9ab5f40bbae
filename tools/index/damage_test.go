package index

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/tools/index/indextest"
)

func dbFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// closedIndex returns a directory with an index of the given number of pages and one page
// with the word lighthouse.
func closedIndex(t *testing.T, pages int) (*history, string) {
	t.Helper()
	h := newHistory()
	h.commit(indextest.NewGenerator(3).Pages(pages, 3000))
	h.commit(map[string][]byte{"mark.md": []byte("lighthouse")})
	dir := t.TempDir()
	x, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	update(t, x, h)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	return h, dir
}

func TestIndexHealsItself(t *testing.T) {
	damage := func(f func(t *testing.T, file string)) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, file := range dbFiles(t, dir) {
				f(t, file)
			}
		}
	}
	for name, break_ := range map[string]func(t *testing.T, dir string){
		"missing":   damage(func(t *testing.T, f string) { os.Remove(f) }),
		"empty":     damage(func(t *testing.T, f string) { os.Truncate(f, 0) }),
		"truncated": damage(func(t *testing.T, f string) { os.Truncate(f, 10_000) }),
		"garbage":   damage(func(t *testing.T, f string) { os.WriteFile(f, []byte(strings.Repeat("garbage ", 5000)), 0o600) }),
		"no tables": damage(func(t *testing.T, f string) {
			os.Remove(f)
			execSQL(t, f, `CREATE TABLE other(x)`)
		}),
		"other schema": damage(func(t *testing.T, f string) { execSQL(t, f, `UPDATE meta SET value = 'old' WHERE key = 'schema'`) }),
		"unknown commit": damage(func(t *testing.T, f string) {
			execSQL(t, f, `UPDATE meta SET value = 'feedfeedfeedfeedfeedfeedfeedfeedfeedfeed' WHERE key = 'commit'`)
		}),
		"half-built": func(t *testing.T, dir string) {
			for _, f := range dbFiles(t, dir) {
				os.Rename(f, f+".new")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, dir := closedIndex(t, 30)
			break_(t, dir)
			x := openIndex(t, Options{Dir: dir})
			if _, err := x.Search(t.Context(), testCollections, Query{Text: "lighthouse"}); err != nil {
				t.Errorf("a search over a broken index: %v", err)
			}
			update(t, x, h)
			if got := paths(search(t, x, "lighthouse")); !slices.Equal(got, []string{"mark.md"}) {
				t.Errorf("%v", got)
			}
			if files := dbFiles(t, dir); len(files) != 1 {
				t.Errorf("left over: %v", files)
			}
		})
	}
}

func execSQL(t *testing.T, file, q string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(q); err != nil {
		t.Fatal(err)
	}
}

// Missing or wrong data in any table is reported by a search or does not affect the answer.
// The next update rebuilds an index in which a search or an update found damage.
func TestDamageInEveryTableIsRepaired(t *testing.T) {
	for _, damage := range []string{
		`DELETE FROM segments`,
		`DELETE FROM blocks`,
		`UPDATE blocks SET data = zeroblob(100)`,
		`UPDATE blocks SET data = substr(data, 1, length(data) - 9)`,
		`UPDATE segments SET head = zeroblob(100)`,
		`UPDATE segments SET head = substr(head, 1, length(head) / 2)`,
		`DELETE FROM docs`,
		`DELETE FROM texts`,
		`DELETE FROM chunks`,
		`UPDATE chunks SET tokens = x'ff'`,
		`DELETE FROM meta`,
		`INSERT INTO dead(doc) SELECT id FROM docs`,
		`DROP TABLE dead`, `DROP TABLE blocks`, `DROP TABLE segments`, `DROP TABLE chunks`, `DROP TABLE texts`, `DROP TABLE docs`, `DROP TABLE meta`,
		// Attack: rows that contradict one another. Only an update finds them.
		`DELETE FROM texts WHERE id = (SELECT id FROM docs WHERE path = 'mark.md')`,
		`UPDATE meta SET value = '1' WHERE key = 'next'`,
		`UPDATE meta SET value = 'x' WHERE key = 'next'`,
		`UPDATE meta SET value = '1' WHERE key = 'rows'`,
		`UPDATE meta SET value = '' WHERE key = 'commit'`,
		`DELETE FROM meta WHERE key = 'commit'`,
		`UPDATE docs SET lines = 'abc'`,
	} {
		t.Run(damage, func(t *testing.T) {
			h, dir := closedIndex(t, 5)
			execSQL(t, dbFiles(t, dir)[0], damage)
			x := openIndex(t, Options{Dir: dir})
			for _, q := range []string{"lighthouse", `"lighthouse keeper"`} {
				if _, err := x.Search(t.Context(), testCollections, Query{Text: q}); err != nil {
					t.Errorf("a search over a broken index: %v", err)
				}
			}
			h.commit(map[string][]byte{"mark.md": []byte("the lighthouse keeper"), "knowledge/new.md": []byte("new")})
			update(t, x, h)
			if _, err := x.Search(t.Context(), testCollections, Query{Text: "keeper"}); err != nil {
				t.Errorf("a search over a broken index: %v", err)
			}
			update(t, x, h)
			if got := paths(search(t, x, `"lighthouse keeper"`)); !slices.Equal(got, []string{"mark.md"}) {
				t.Errorf("%v", got)
			}
		})
	}
}

// Attack: the remains of an older or unfinished index of a killed server contain text that
// may have been purged since.
func TestLeftoversAreRemovedAtStart(t *testing.T) {
	_, dir := closedIndex(t, 5)
	whole := dbFiles(t, dir)[0]
	base := strings.TrimSuffix(whole, ".1.db")
	if base == whole {
		t.Fatal(whole)
	}
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	newest := base + ".3.db"
	for _, name := range []string{newest, base + ".2.db", base + ".2.db-wal", base + ".9.db.new", base + ".9.db.new-journal"} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x := openIndex(t, Options{Dir: dir})
	if got := paths(search(t, x, "lighthouse")); !slices.Equal(got, []string{"mark.md"}) {
		t.Errorf("%v", got)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if strings.Contains(f.Name(), ".db") && !strings.HasPrefix(f.Name(), filepath.Base(newest)) || strings.Contains(f.Name(), ".new") {
			t.Errorf("%s is left", f.Name())
		}
	}
}

// If pages of the database are damaged while it is open, a query reports that and the
// follower rebuilds the database.
func TestRotMetByAQueryIsRepaired(t *testing.T) {
	h, dir := closedIndex(t, 200)
	file := dbFiles(t, dir)[0]
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// Damage all pages except the first ones, which hold the schema and the data that is
	// read when the database opens.
	copy(data[64<<10:], bytes.Repeat([]byte{0xa5}, len(data)-(64<<10)))
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	x := openIndex(t, Options{Dir: dir})
	f := x.Follow(h)
	defer f.Close()
	r, err := x.Search(t.Context(), testCollections, Query{Text: "lighthouse"})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Hits) == 0 && len(r.Notes) == 0 {
		t.Errorf("a damaged index answers as if it were empty: %+v", r)
	}
	f.Refresh(testSpace)
	e, _ := x.entry(testSpace)
	for {
		e.mu.Lock()
		damaged, news := e.damaged, e.news
		e.mu.Unlock()
		if r := search(t, x, "lighthouse"); !damaged && len(r.Hits) == 1 {
			break
		}
		select {
		case <-news:
		case <-t.Context().Done():
			t.Fatal("not repaired")
		}
	}
}
