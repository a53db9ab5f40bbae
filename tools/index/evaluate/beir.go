package evaluate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// BEIR is a collection in the layout of the BEIR benchmark
// (github.com/beir-cellar/beir): corpus.jsonl, queries.jsonl, and qrels.tsv or
// qrels/test.tsv.
type BEIR struct {
	Collection
	corpus *os.File
}

// Close closes the corpus. Documents are read from the corpus while they are indexed.
func (b *BEIR) Close() error { return b.corpus.Close() }

// OpenBEIR reads the queries and judgments of a collection, and the positions of its
// documents in the corpus. The caller must call Close.
func OpenBEIR(dir string) (_ *BEIR, err error) {
	b := &BEIR{}
	file := filepath.Join(dir, "corpus.jsonl")
	if b.corpus, err = openRegular(file); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.corpus.Close()
		}
	}()
	known, err := b.readCorpus(file)
	if err != nil {
		return nil, err
	}
	queries, err := b.readQueries(filepath.Join(dir, "queries.jsonl"))
	if err != nil {
		return nil, err
	}
	qrels, err := qrelsFile(dir)
	if err != nil {
		return nil, err
	}
	if err := b.readQrels(qrels, known, queries); err != nil {
		return nil, err
	}
	return b, b.judged()
}

// entry is a line of corpus.jsonl or queries.jsonl. Other fields of the line ("metadata") are
// ignored.
type entry struct {
	ID    entryID `json:"_id"`
	Title string  `json:"title"`
	Text  string  `json:"text"`
}

// entryID is an id as a text. In some collections, ids are numbers.
type entryID string

func (e *entryID) UnmarshalJSON(b []byte) error {
	if s := string(b); s != "null" && !strings.ContainsAny(s, `"{[tf`) {
		*e = entryID(s)
		return nil
	}
	return json.Unmarshal(b, (*string)(e))
}

func readEntry(file string, l textLine) (e entry, err error) {
	if err := json.Unmarshal(l.text, &e); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return e, lineError(file, l.number, "%q may not be a JSON %s", wrong.Field, wrong.Value)
		}
		return e, lineError(file, l.number, "it is not JSON (%s)", err)
	}
	if e.ID == "" {
		return e, lineError(file, l.number, `it has no "_id"`)
	}
	return e, nil
}

// readCorpus records the position of each document, and returns the ids.
func (b *BEIR) readCorpus(file string) (map[string]bool, error) {
	known := map[string]bool{}
	var repeated, empty oddity
	err := eachLine(file, func(l textLine) error {
		e, err := readEntry(file, l)
		if err != nil {
			return err
		}
		id := string(e.ID)
		if known[id] {
			repeated.add(id)
			return nil
		}
		known[id] = true
		if strings.TrimSpace(e.Title+e.Text) == "" {
			empty.add(id)
		}
		offset, size := l.offset, len(l.text)
		b.Documents = append(b.Documents, Document{
			ID: id, Path: space.Path(fmt.Sprintf("d%06d.md", len(b.Documents))), Size: int64(len(e.Title) + len(e.Text)),
			Read: func() ([]byte, error) { return b.page(offset, size) },
		})
		return nil
	})
	b.note(repeated.n, "document has an id that another has, and is left out", "documents have an id that another has, and are left out", repeated.first)
	b.note(empty.n, "document has no text", "documents have no text", empty.first)
	if err == nil && len(known) == 0 {
		err = fault.New(fault.Invalid, "%s has no documents.", filepath.Base(file))
	}
	return known, err
}

// page returns a document as a Markdown page.
func (b *BEIR) page(offset int64, size int) ([]byte, error) {
	line := make([]byte, size)
	if _, err := b.corpus.ReadAt(line, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the corpus: %w", err)
	}
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, fmt.Errorf("the corpus has changed: %w", err)
	}
	return pageOf(e.Title, e.Text), nil
}

func pageOf(title, text string) []byte {
	var page bytes.Buffer
	if title = strings.Join(strings.Fields(title), " "); title != "" {
		fmt.Fprintf(&page, "# %s\n", title)
	}
	page.WriteByte('\n') // so that no text begins a block of front matter
	page.WriteString(text)
	return page.Bytes()
}

func (b *BEIR) readQueries(file string) (map[string]int, error) {
	at := map[string]int{}
	var repeated oddity
	err := eachLine(file, func(l textLine) error {
		e, err := readEntry(file, l)
		if err != nil {
			return err
		}
		id := string(e.ID)
		if _, there := at[id]; there {
			repeated.add(id)
			return nil
		}
		at[id] = len(b.Queries)
		b.Queries = append(b.Queries, Query{ID: id, Text: e.Text, Grades: Grades{}})
		return nil
	})
	b.note(repeated.n, "query has an id that another has, and is left out", "queries have an id that another has, and are left out", repeated.first)
	return at, err
}

// qrelsFile returns the file with the judgments: qrels.tsv, or else the file of the test split.
func qrelsFile(dir string) (string, error) {
	for _, name := range []string{"qrels.tsv", "qrels/test.tsv"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", fault.New(fault.NotFound, "%s has neither qrels.tsv nor qrels/test.tsv, so it does not say what its queries should find.", dir)
}

// readQrels reads judgments. A line contains a query's id, a document's id and a grade, or
// trec_eval's four columns, of which the second is ignored. Tabs separate the columns, or spaces
// in a line without tabs. The first line may be a header.
func (b *BEIR) readQrels(file string, known map[string]bool, queries map[string]int) error {
	var repeated, strangers, nowhere oddity
	first := true
	err := eachLine(file, func(l textLine) error {
		columns := strings.Split(string(l.text), "\t")
		if len(columns) == 1 {
			columns = strings.Fields(string(l.text))
		}
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		if len(columns) == 4 {
			columns = []string{columns[0], columns[2], columns[3]}
		}
		if len(columns) != 3 {
			return lineError(file, l.number, "it has %d columns, and not a query's id, a document's id and a score", len(columns))
		}
		header := first
		first = false
		grade, err := strconv.ParseFloat(columns[2], 64)
		if err != nil && header {
			return nil
		}
		if err != nil || math.IsNaN(grade) || math.IsInf(grade, 0) {
			return lineError(file, l.number, "%.40q is not a score", columns[2])
		}
		query, there := queries[columns[0]]
		if !there {
			strangers.add(columns[0])
			return nil
		}
		if !known[columns[1]] {
			nowhere.add(columns[1])
		}
		grades := b.Queries[query].Grades
		if _, there := grades[columns[1]]; there {
			repeated.add(columns[0] + " " + columns[1])
			return nil
		}
		grades[columns[1]] = grade
		return nil
	})
	b.note(repeated.n, "judgment is there twice, and its first score counts", "judgments are there twice, and their first score counts", repeated.first)
	b.note(strangers.n, "judgment is of a query that is not there, and is left out", "judgments are of queries that are not there, and are left out", strangers.first)
	b.note(nowhere.n, "judgment is of a document that is not there; it counts as one that is not found", "judgments are of documents that are not there; they count as not found", nowhere.first)
	return err
}
