package evaluate

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Write writes the pages below dir/pages. It writes each set of queries to a file in dir that
// ReadPairs can read: descriptions.tsv, words.tsv and identifiers.tsv.
func (d *Docs) Write(dir string) error {
	for _, doc := range d.Documents {
		text, err := doc.Read()
		if err != nil {
			return err
		}
		file := filepath.Join(dir, "pages", filepath.FromSlash(string(doc.Path)))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return errors.Join(
		writePairs(filepath.Join(dir, "descriptions.tsv"), d.Descriptions),
		writePairs(filepath.Join(dir, "words.tsv"), d.Words),
		writePairs(filepath.Join(dir, "identifiers.tsv"), d.Identifiers),
	)
}

func writePairs(file string, queries []Query) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	for _, q := range queries {
		for _, page := range slices.Sorted(maps.Keys(q.Grades)) {
			if _, err := fmt.Fprintf(w, "%s\t%s\n", q.Text, page); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}
