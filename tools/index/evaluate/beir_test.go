package evaluate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools/index"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collection writes files and opens them as a collection.
func collection(t *testing.T, files map[string]string) (*BEIR, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := OpenBEIR(dir)
	if err == nil {
		t.Cleanup(func() { b.Close() })
	}
	return b, err
}

const (
	plainCorpus  = `{"_id": "d1", "title": "Wings", "text": "Lift."}` + "\n" + `{"_id": "d2", "text": "Heat."}` + "\n"
	plainQueries = `{"_id": "q1", "text": "lift of wings"}` + "\n" + `{"_id": "q2", "text": "heat"}` + "\n"
	plainQrels   = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t1\n"
)

func with(changes ...string) map[string]string {
	files := map[string]string{"corpus.jsonl": plainCorpus, "queries.jsonl": plainQueries, "qrels.tsv": plainQrels}
	for i := 0; i < len(changes); i += 2 {
		files[changes[i]] = changes[i+1]
		if changes[i+1] == "" {
			delete(files, changes[i])
		}
	}
	return files
}

// TestBEIRForms reads the same judgments in every format of real collections.
func TestBEIRForms(t *testing.T) {
	plain := []Query{
		{ID: "q1", Text: "lift of wings", Grades: Grades{"d1": 2}},
		{ID: "q2", Text: "heat", Grades: Grades{"d2": 1}},
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []Query // nil: the plain queries
		notes string  // a part of the expected notes; empty: there are none
	}{
		{"as it should be", with(), nil, ""},
		{"the judgments of the test split", with("qrels.tsv", "", "qrels/test.tsv", plainQrels, "qrels/dev.tsv", "q1\td2\t1\n"), nil, ""},
		{"without a header", with("qrels.tsv", "q1\td1\t2\nq2\td2\t1"), nil, ""},
		{"as trec_eval has it", with("qrels.tsv", "q1 0 d1 2\nq2 0 d2 1\n"), nil, ""},
		{"four columns with tabs", with("qrels.tsv", "q1\t0\td1\t2\nq2\t0\td2\t1\n"), nil, ""},
		{"byte order marks and Windows' line ends", with(
			"corpus.jsonl", "\ufeff"+strings.ReplaceAll(plainCorpus, "\n", "\r\n"),
			"queries.jsonl", "\ufeff"+strings.ReplaceAll(plainQueries, "\n", "\r\n"),
			"qrels.tsv", "\ufeff"+strings.ReplaceAll(plainQrels, "\n", "\r\n")), nil, ""},
		{"blank lines", with("corpus.jsonl", "\n"+plainCorpus+"\n  \n", "qrels.tsv", "\n"+plainQrels+"\n\n"), nil, ""},
		{"numbers as ids", map[string]string{
			"corpus.jsonl": `{"_id": 1, "text": "Lift."}`, "queries.jsonl": `{"_id": 7, "text": "lift"}`, "qrels.tsv": "7\t1\t1"},
			[]Query{{ID: "7", Text: "lift", Grades: Grades{"1": 1}}}, ""},
		{"negative and fractional scores", with("qrels.tsv", "q1\td1\t2.5\nq1\td2\t-1\nq2\td2\t0.5\n"),
			[]Query{{ID: "q1", Text: "lift of wings", Grades: Grades{"d1": 2.5, "d2": -1}}, {ID: "q2", Text: "heat", Grades: Grades{"d2": 0.5}}}, ""},
		{"a query without judgments", with("qrels.tsv", "q1\td1\t2\n"), plain[:1], `1 query has no judgments and is left out: "q2".`},
		{"a query without a relevant document", with("qrels.tsv", "q1\td1\t2\nq2\td2\t0\n"),
			[]Query{plain[0], {ID: "q2", Text: "heat", Grades: Grades{"d2": 0}}}, `1 query has no relevant document and counts as 0: "q2".`},
		{"a document twice", with("corpus.jsonl", plainCorpus+`{"_id": "d1", "text": "Another."}`), nil, `1 document has an id that another has, and is left out: "d1".`},
		{"a query twice", with("queries.jsonl", plainQueries+`{"_id": "q1", "text": "another"}`), nil, `1 query has an id that another has, and is left out: "q1".`},
		{"a judgment twice", with("qrels.tsv", plainQrels+"q1\td1\t0\nq1\td1\t1\n"), nil, `2 judgments are there twice, and their first score counts, such as "q1 d1".`},
		{"a judgment of an unknown query", with("qrels.tsv", plainQrels+"q9\td1\t1\n"), nil, `1 judgment is of a query that is not there, and is left out: "q9".`},
		{"a judgment of an unknown document", with("qrels.tsv", plainQrels+"q2\td9\t1\n"),
			[]Query{plain[0], {ID: "q2", Text: "heat", Grades: Grades{"d2": 1, "d9": 1}}}, `1 judgment is of a document that is not there; it counts as one that is not found: "d9".`},
		{"a document without text", with("corpus.jsonl", plainCorpus+`{"_id": "d3", "title": null, "text": " "}`), nil, `1 document has no text: "d3".`},
		{"other fields", with("corpus.jsonl", strings.ReplaceAll(plainCorpus, `"text"`, `"metadata": {"a": [1]}, "text"`)), nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := collection(t, c.files)
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			if want == nil {
				want = plain
			}
			if !reflect.DeepEqual(b.Queries, want) {
				t.Errorf("%+v, want %+v", b.Queries, want)
			}
			if got := strings.Join(b.Notes, "\n"); got != c.notes {
				t.Errorf("notes %q, want %q", got, c.notes)
			}
		})
	}
}

// TestBEIRErrors checks that each error names the place of the fault, in one line.
func TestBEIRErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no corpus", with("corpus.jsonl", ""), "corpus.jsonl cannot be read"},
		{"no queries", with("queries.jsonl", ""), "queries.jsonl cannot be read"},
		{"no judgments", with("qrels.tsv", ""), "has neither qrels.tsv nor qrels/test.tsv"},
		{"an empty corpus", with("corpus.jsonl", "\n"), "corpus.jsonl has no documents."},
		{"empty queries", with("queries.jsonl", "\n"), "No query has judgments"},
		{"empty judgments", with("qrels.tsv", "query-id\tcorpus-id\tscore\n"), "No query has judgments"},
		{"nothing agrees", with("qrels.tsv", "1\t1\t1\n"), "No query has judgments"},
		{"no JSON", with("corpus.jsonl", plainCorpus+"d3 Something\n"), "Line 3 of corpus.jsonl cannot be used: it is not JSON"},
		{"a line that is cut off", with("corpus.jsonl", plainCorpus+`{"_id": "d3", "text": "Some`), "Line 3 of corpus.jsonl cannot be used: it is not JSON"},
		{"a list", with("queries.jsonl", `[1, 2]`), "Line 1 of queries.jsonl"},
		{"no id", with("queries.jsonl", `{"text": "x"}`), `Line 1 of queries.jsonl cannot be used: it has no "_id".`},
		{"an id that is a list", with("queries.jsonl", `{"_id": ["x"], "text": "x"}`), "Line 1 of queries.jsonl"},
		{"a text that is a number", with("corpus.jsonl", `{"_id": "d1", "text": 5}`), `Line 1 of corpus.jsonl cannot be used: "text" may not be a JSON number.`},
		{"two columns", with("qrels.tsv", plainQrels+"q1\td1\n"), "Line 4 of qrels.tsv cannot be used: it has 2 columns"},
		{"a score that is a word", with("qrels.tsv", plainQrels+"q1\td1\thigh\n"), `Line 4 of qrels.tsv cannot be used: "high" is not a score.`},
		{"a score that is no number", with("qrels.tsv", plainQrels+"q1\td1\tNaN\n"), `"NaN" is not a score`},
		{"an endless score", with("qrels.tsv", plainQrels+"q1\td1\tInf\n"), `"Inf" is not a score`},
		{"binary", with("corpus.jsonl", "\x00\x01\x02"), "Line 1 of corpus.jsonl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := collection(t, c.files)
			if err == nil || !strings.Contains(fault.PublicOf(err), c.want) || strings.Contains(fault.PublicOf(err), "\n") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// A line may be as long as a book, but not longer than MaxLine.
func TestBEIRHugeLines(t *testing.T) {
	b, err := collection(t, with("corpus.jsonl", plainCorpus+`{"_id": "d3", "text": "`+strings.Repeat("word ", 1<<20)+`"}`+"\n"))
	if err != nil || len(b.Documents) != 3 {
		t.Fatalf("%v", err)
	}
	page, err := b.Documents[2].Read()
	if err != nil || len(page) < 5<<20 {
		t.Errorf("%d bytes, %v", len(page), err)
	}
	if testing.Short() {
		t.Skip("a line of 64 MB takes a second")
	}
	_, err = collection(t, with("corpus.jsonl", plainCorpus+strings.Repeat(" ", MaxLine+1<<20)+"\n"))
	if err == nil || !strings.Contains(fault.PublicOf(err), "Line 3 of corpus.jsonl cannot be used: it is longer than 64 MB") {
		t.Error(err)
	}
}

// Documents become pages with their titles as headings, and searches for their words find them.
func TestBEIRIsSearched(t *testing.T) {
	b, err := collection(t, with("corpus.jsonl", "\ufeff"+`{"_id": "d1", "title": "Two\nlines", "text": "Lift of wings."}`+"\r\n"+`{"_id": "d2", "text": "---\ntitle: no front matter\n---\nHeat."}`+"\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"# Two lines\n\nLift of wings.", "\n---\ntitle: no front matter\n---\nHeat."} {
		if page, err := b.Documents[i].Read(); err != nil || string(page) != want {
			t.Errorf("%q, %v", page, err)
		}
	}
	read := 0
	built, err := Build(t.Context(), index.Options{}, b.Documents, func(int) { read++ })
	if err != nil {
		t.Fatal(err)
	}
	f, err := Run(t.Context(), built, b.Queries, Depth, nil)
	if err != nil || f.NDCG != 1 || f.MRR != 1 || f.MAP != 1 || f.Recall != 1 || read != 2 {
		t.Errorf("%+v, %v; %d read", f, err, read)
	}
	dir := built.dir
	if err := built.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

// A build that fails or is interrupted leaves no files.
func TestBuildCleansUp(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	broken := []Document{{ID: "a", Path: "a.md", Size: 1, Read: func() ([]byte, error) { return nil, fmt.Errorf("the disk is gone") }}}
	if _, err := Build(t.Context(), index.Options{}, broken, nil); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Error(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	slow := []Document{{ID: "a", Path: "a.md", Size: 1, Read: func() ([]byte, error) { interrupt(); return []byte("A"), nil }}, {ID: "b", Path: "b.md", Size: 1, Read: func() ([]byte, error) { return []byte("B"), nil }}}
	if _, err := Build(ctx, index.Options{}, slow, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestSourceTellsOneCommit(t *testing.T) {
	s := newSource([]Document{{Path: "a.md"}, {Path: "b.md", Blob: "5b"}}, nil)
	files, err := s.Diff(t.Context(), "x", "", onlyCommit)
	if err != nil || len(files) != 2 || files[0].New == files[1].New || files[1].New != space.BlobID("5b") {
		t.Errorf("%+v, %v", files, err)
	}
	if files, err := s.Diff(t.Context(), "x", onlyCommit, onlyCommit); err != nil || len(files) != 0 {
		t.Errorf("%+v, %v", files, err)
	}
	if _, err := s.ReadBlob(t.Context(), "x", "nosuch"); err == nil {
		t.Error("a blob that is not there was read")
	}
}

// FuzzBEIR checks that OpenBEIR reads or refuses arbitrary files.
func FuzzBEIR(f *testing.F) {
	f.Add(plainCorpus, plainQueries, plainQrels)
	f.Add("\ufeff{}", `{"_id": 1e99}`, "\t\t\t")
	f.Add(`{"_id": {}}`, `{"_id": null}`, "q1 0 d1 1")
	f.Fuzz(func(t *testing.T, corpus, queries, qrels string) {
		b, err := collection(t, map[string]string{"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels.tsv": qrels})
		if err != nil {
			if fault.CodeOf(err) == fault.Internal {
				t.Errorf("not said what is wrong: %v", err)
			}
			return
		}
		for _, d := range b.Documents {
			if _, err := d.Read(); err != nil {
				t.Errorf("%s: %v", d.ID, err)
			}
		}
		for _, q := range b.Queries {
			if len(q.Grades) == 0 {
				t.Errorf("%q has no judgments", q.ID)
			}
		}
	})
}
