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
	return Write(dir, d.Documents, map[string][]Query{"descriptions": d.Descriptions, "words": d.Words, "identifiers": d.Identifiers})
}

// Write writes documents below dir/pages. It writes each set of queries to a file
// NAME.tsv in dir, which ReadPairs can read.
func Write(dir string, docs []Document, sets map[string][]Query) error {
	for _, doc := range docs {
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
	for name, queries := range sets {
		if err := writePairs(filepath.Join(dir, name+".tsv"), queries); err != nil {
			return err
		}
	}
	return nil
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
