//go:build linux

package main

import (
	"fmt"
	"os"
	"path"
	"strings"

	"satchel/tools/index/evaluate"
	"satchel/tools/index/evaluate/conversations"
)

// docsQueries writes the collection with which `satchel eval` measures search on documentation:
// pages without their descriptions, and the queries that they answer.
func docsQueries(out string, trees []string) error {
	pages, err := readTrees(trees)
	if err != nil {
		return err
	}
	docs, err := evaluate.FromDocs(pages, 6)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d pages, %d descriptions, %d identifiers\n", len(docs.Documents), len(docs.Descriptions), len(docs.Identifiers))
	return docs.Write(out)
}

// talkQueries writes the collection with which `satchel eval` measures search on conversations:
// the sessions, and the questions that they answer.
func talkQueries(out string, trees []string) error {
	pages, err := readTrees(trees)
	if err != nil {
		return err
	}
	c, err := conversations.Generate(pages)
	if err != nil {
		return err
	}
	asked, reworded := c.Queries()
	fmt.Fprintf(os.Stderr, "%d sessions, %d questions in two wordings\n", len(c.Documents), len(asked))
	return evaluate.Write(out, c.Documents, map[string][]evaluate.Query{"asked": asked, "reworded": reworded})
}

// readTrees reads the pages of trees, written as NAME=TREE or NAME=TREE:UNDER. A tree
// is a directory or a .tar.gz archive. UNDER is the directory in the tree that contains the pages.
func readTrees(trees []string) (map[string][]byte, error) {
	pages := map[string][]byte{}
	for _, tree := range trees {
		name, file, ok := strings.Cut(tree, "=")
		if !ok {
			return nil, fmt.Errorf("%q does not name a tree; write it as NAME=TREE or NAME=TREE:UNDER", tree)
		}
		file, under, _ := strings.Cut(file, ":")
		some, err := evaluate.ReadPages(file, under)
		if err != nil {
			return nil, err
		}
		for p, text := range some {
			pages[path.Join(name, p)] = text
		}
	}
	return pages, nil
}
