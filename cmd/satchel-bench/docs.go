//go:build linux

package main

import (
	"fmt"
	"os"
	"path"
	"strings"

	"satchel/tools/index/evaluate"
)

// docsQueries writes what `satchel eval` measures search with on documentation:
// pages without their descriptions, and the queries that they answer. A tree is a
// directory or a .tar.gz archive, and its pages are those below a directory in
// it.
func docsQueries(out string, trees []string) error {
	pages := map[string][]byte{}
	for _, tree := range trees {
		name, file, ok := strings.Cut(tree, "=")
		if !ok {
			return fmt.Errorf("%q does not name a tree; write it as NAME=TREE or NAME=TREE:UNDER", tree)
		}
		file, under, _ := strings.Cut(file, ":")
		some, err := evaluate.ReadPages(file, under)
		if err != nil {
			return err
		}
		for p, text := range some {
			pages[path.Join(name, p)] = text
		}
	}
	docs, err := evaluate.FromDocs(pages, 6)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d pages, %d descriptions, %d identifiers\n", len(docs.Documents), len(docs.Descriptions), len(docs.Identifiers))
	return docs.Write(out)
}
