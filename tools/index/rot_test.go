package index

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/tools/index/indextest"
	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
	"satchel/tools/index/present"
)

// rotPages returns pages that fill every column: languages, versions, tags, files,
// headings, a table and a fence that are cut, copies.
func rotPages() map[string][]byte {
	g := indextest.NewGenerator(8)
	files := g.Pages(25, 3000)
	copied := g.Page(2500)
	files["docs/v1/guide.md"], files["docs/v2/guide.md"] = copied, copied
	files["mark.md"] = []byte("---\ntitle: The lighthouse\ndescription: What the keeper does\ntags: [sea, light]\nrelevant_files: [src/lamp.go]\n---\n\n# Lighthouse\n\nThe lighthouse keeper lights the lamp.\n\n## Lamp\n\n" + g.Sentence(400) + "\n")
	files["src/lamp.go"] = []byte("package lamp\n\n// Light lights the lamp of the lighthouse.\nfunc Light() {}\n")
	files["table.md"] = []byte("# Ships\n\n| ship | lamp |\n| --- | --- |\n" + strings.Repeat("| "+g.Sentence(3)+" | lighthouse "+g.Word()+" |\n", 200))
	files["ja.md"] = []byte("# 灯台\n\n灯台の光は船を導きます。灯台守は毎晩ランプを灯します。\n")
	return files
}

var rotQueries = []string{"lighthouse", `"lighthouse keeper"`, "how does the keeper light the lamp of the lighthouse", "lamp", "灯台", "kind:knowledge sort:path", "guide"}

// answers returns the parts of the answers that a caller sees. told reports whether an
// answer failed or says that the index is damaged.
func answers(t *testing.T, x *Index) (all []Results, told bool) {
	t.Helper()
	for _, q := range rotQueries {
		r, err := x.Search(t.Context(), testCollections, Query{Text: q})
		if err != nil {
			t.Fatalf("search %q: %v", q, err)
		}
		told = told || len(r.Notes) > 0 || len(r.Indexes) == 0 || r.Indexes[0].Docs == 0
		r.Scope, r.Indexes = "", nil
		all = append(all, r)
	}
	e, err := x.entry(testSpace)
	if err != nil {
		t.Fatal(err)
	}
	damaged, _ := e.health()
	return all, told || damaged
}

// wrong returns a hit that disagrees with its page, or nil if there is none.
func wrong(t *testing.T, h *history, got []Results) *present.Hit {
	t.Helper()
	files, err := h.Files(t.Context(), testSpace, h.head, "")
	if err != nil {
		t.Fatal(err)
	}
	blobs := map[string]space.BlobID{}
	for _, f := range files {
		blobs[string(f.Path)] = f.Blob
	}
	for _, r := range got {
		for i := range r.Hits {
			hit := &r.Hits[i]
			text := h.blobs[hit.Blob]
			if hit.Blob == "" || hit.Blob != blobs[hit.Path] || hit.Title != parse.Title(hit.Path, text) {
				return hit
			}
			for line := range strings.Lines(hit.Text) {
				if !strings.Contains(string(text), strings.TrimSpace(line)) {
					return hit
				}
			}
		}
	}
	return nil
}

// rot compares the answers of an index in which a bit was turned, and repairs the index.
func rot(t *testing.T, x *Index, h *history, want []Results, what string) (told bool) {
	t.Helper()
	got, told := answers(t, x)
	if !told && !reflect.DeepEqual(got, want) {
		for i := range got {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("%s: %q is answered with\n%+v, and is\n%+v", what, rotQueries[i], got[i], want[i])
			}
		}
	}
	if bad := wrong(t, h, got); bad != nil {
		t.Fatalf("%s: an answer that says something is wrong has %+v", what, *bad)
	}
	update(t, x, h)
	if told {
		if again, _ := answers(t, x); !reflect.DeepEqual(again, want) {
			t.Fatalf("%s: it was not repaired: %+v", what, again)
		}
	}
	return told
}

// rotIndex returns an index of rotPages, which the test closes, and its directory.
func rotIndex(t *testing.T) (h *history, x *Index, dir string) {
	t.Helper()
	h, dir = newHistory(), t.TempDir()
	h.commit(rotPages())
	x, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	update(t, x, h)
	return h, x, dir
}

// Attack: a bit flips in any column of any table. No answer is wrong: it is unchanged, or
// the damage is reported and repaired.
func TestTurnedBitsInEveryColumn(t *testing.T) {
	h, x, whole := rotIndex(t)
	h.commit(map[string][]byte{"mark.md": append(rotPages()["mark.md"], "\nThe end.\n"...)}) // adds another segment and a deleted document
	update(t, x, h)
	want, told := answers(t, x)
	if told {
		t.Fatal("a whole index says that it is damaged")
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(dbFiles(t, whole)[0])
	if err != nil {
		t.Fatal(err)
	}
	name := dbFiles(t, whole)[0][len(whole):]
	for table, columns := range map[string]string{
		"docs": "id path blob title description tags files kind lang version date lines head link sum", "texts": "id sum text",
		"chunks": "id start end line0 line1 crumbs anchors sum tokens", "segments": "id head", "blocks": "id data", "dead": "doc", "meta": "key value",
	} {
		for column := range strings.FieldsSeq(columns) {
			t.Run(table+"."+column, func(t *testing.T) {
				met := 0
				rng := rand.New(rand.NewPCG(9, uint64(parse.TermHash(table+column))))
				for _, open := range []bool{false, true} {
					dir := t.TempDir()
					if err := os.WriteFile(dir+name, data, 0o600); err != nil {
						t.Fatal(err)
					}
					// Use no cache, so that queries read what is on disk.
					x := openIndex(t, Options{Dir: dir, storage: postings.Options{CacheBytes: 1, Readers: 1}})
					if open {
						answers(t, x)
					}
					n := turnBit(t, dir+name, table, column, rng)
					if rot(t, x, h, want, fmt.Sprintf("%d rows, open: %v", n, open)) {
						met++
					}
				}
				// Segments are known by their heads. Their ids only determine their order.
				if met == 0 && table+"."+column != "segments.id" {
					t.Error("nobody met the damage")
				}
			})
		}
	}
}

// turnBit turns one bit of a column in every row where constraints allow it.
func turnBit(t *testing.T, file, table, column string, rng *rand.Rand) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=ignore_check_constraints(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	key := "rowid"
	if table == "meta" {
		key = "key"
	}
	rows, err := db.Query(`SELECT ` + key + `, ` + column + `, typeof(` + column + `) FROM ` + table)
	if err != nil {
		t.Fatal(err)
	}
	type change struct{ key, value any }
	var changes []change
	for rows.Next() {
		var k, v any
		var kind string
		if err := rows.Scan(&k, &v, &kind); err != nil {
			t.Fatal(err)
		}
		turn := func(b []byte) []byte {
			if len(b) > 0 {
				bit := rng.IntN(8 * len(b))
				b[bit/8] ^= 1 << (bit % 8)
			}
			return b
		}
		switch old := v.(type) {
		case int64:
			v = old ^ 1<<rng.IntN(10)
		case string:
			v = string(turn([]byte(old)))
		case []byte:
			v = turn(old)
		}
		changes = append(changes, change{k, v})
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if _, err := db.Exec(`UPDATE OR IGNORE `+table+` SET `+column+` = ? WHERE `+key+` = ?`, c.value, c.key); err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// Attack: a bit turns anywhere in the file, also in SQLite's own data, while the database
// is closed or open, before an update or a query.
func TestTurnedBitsAnywhere(t *testing.T) {
	h, x, whole := rotIndex(t)
	want, _ := answers(t, x)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	file := dbFiles(t, whole)[0]
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(10, 10))
	told := 0
	const tries = 80
	for i := range tries {
		dir := t.TempDir()
		name := dir + file[len(whole):]
		rotten := append([]byte(nil), data...)
		bit := rng.IntN(8 * len(data))
		rotten[bit/8] ^= 1 << (bit % 8)
		open := i%2 == 1
		if err := os.WriteFile(name, map[bool][]byte{true: data, false: rotten}[open], 0o600); err != nil {
			t.Fatal(err)
		}
		x := openIndex(t, Options{Dir: dir, storage: postings.Options{CacheBytes: 1, Readers: 1}})
		if open {
			answers(t, x)
			writeAt(t, name, rotten[bit/8:bit/8+1], int64(bit/8))
		}
		if rot(t, x, h, want, fmt.Sprintf("bit %d of byte %d, open: %v", bit%8, bit/8, open)) {
			told++
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d turned bits were met", told, tries)
	if told < tries/10 {
		t.Errorf("only %d of %d turned bits were met", told, tries)
	}
}

func writeAt(t *testing.T, file string, b []byte, at int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// Attack: an index has the text of private pages, and its directory may have been created
// with access for others.
func TestIndexIsItsOwnersAlone(t *testing.T) {
	h, dir := closedIndex(t, 2)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	x := openIndex(t, Options{Dir: dir})
	h.commit(map[string][]byte{"new.md": []byte("new")})
	update(t, x, h)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().IsRegular() && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v", e.Name(), info.Mode())
		}
	}
}
