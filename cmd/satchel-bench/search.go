//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"satchel/internal/space"
	"satchel/tools/index"
	"satchel/tools/index/evaluate"
)

// The corpus of the search figures: 10,000 pages, 50 MB.
const (
	searchPages = 10_000
	searchPage  = 5000 // bytes of a page
)

// searchSuite measures search and its index.
func searchSuite(ctx context.Context, b *bench) error {
	return b.steps(ctx,
		step{"search", benchSearch},
		step{"the index", benchIndex},
		step{"the curve", benchCurve},
	)
}

// queryWords holds the numbers of words that a query can have. Each number is equally frequent.
var queryWords = []int{1, 3, 10}

// queries returns n queries in the words of the corpus. Equal n give the same queries.
func queries(n int) []string {
	w := newWords(7)
	all := make([]string, n)
	for i := range all {
		words := make([]string, queryWords[i%len(queryWords)])
		for j := range words {
			words[j] = w.word()
		}
		all[i] = strings.Join(words, " ")
	}
	return all
}

// benchSearch searches 10,000 pages over MCP, and compares this with ripgrep over the same
// tree.
func benchSearch(ctx context.Context, b *bench) error {
	s, c, err := b.serveOne(ctx, "search")
	if err != nil {
		return err
	}
	defer s.stop()
	defer c.close()
	dir := filepath.Join(b.dir, "search-corpus")
	if err := makeCorpus(dir, b.size(searchPages), searchPage); err != nil {
		return err
	}
	if err := s.importDir(ctx, "ada", dir); err != nil {
		return err
	}
	// Build the index first, so that this does not disturb the measurement.
	if err := s.admin(ctx, new(any), "reindex", "--changed", os.DevNull, "--user", "ada"); err != nil {
		return err
	}
	var ours, theirs times
	for i, q := range queries(b.runs(600)) {
		if err := ours.add(func() error {
			_, err := c.call(ctx, "search", map[string]any{"query": q})
			return err
		}); err != nil {
			return err
		}
		if i%5 > 0 { // ripgrep takes long; every fifth query, of all lengths, is enough
			continue
		}
		if err := theirs.add(func() error { return ripgrep(ctx, dir, q) }); err != nil {
			return err
		}
	}
	b.versus("search_p50", ours.median(), "ms", "ripgrep over the same tree", theirs.median())
	b.versus("search_p95", ours.p(0.95), "ms", "ripgrep over the same tree", theirs.p(0.95))
	return nil
}

// ripgrep counts the matches of a query's words in the files of a directory.
func ripgrep(ctx context.Context, dir, query string) error {
	args := []string{"--ignore-case", "--count-matches"}
	for w := range strings.FieldsSeq(query) {
		args = append(args, "-e", w)
	}
	out, err := exec.CommandContext(ctx, "rg", append(args, dir)...).Output()
	if err != nil && len(out) == 0 && exitCode(err) != 1 { // 1: no match
		return err
	}
	return nil
}

func exitCode(err error) int {
	if e, ok := err.(*exec.ExitError); ok {
		return e.ExitCode()
	}
	return -1
}

// curvePages returns pages of a corpus that need not be held in memory: each is
// made when it is read.
func curvePages(n int) []evaluate.Document {
	docs := make([]evaluate.Document, n)
	for i := range docs {
		docs[i] = evaluate.Document{
			ID: pagePath(i), Path: space.Path(pagePath(i)), Size: searchPage,
			Read: func() ([]byte, error) { return []byte(newWords(1000+uint64(i)).page(i, searchPage)), nil },
		}
	}
	return docs
}

// benchCurve indexes and searches 1,000, 10,000 and 100,000 pages in this
// process. The last index is compared with the one before: ten times the pages
// should take ten times as long.
func benchCurve(ctx context.Context, b *bench) error {
	before := 0.0
	for _, c := range []struct {
		name  string
		pages int
	}{{"1k", 1000}, {"10k", 10_000}, {"100k", 100_000}} {
		if b.quick && c.pages > 1000 {
			continue
		}
		took, err := b.curve(ctx, c.name, curvePages(b.size(c.pages)))
		if err != nil {
			return err
		}
		if c.pages == 100_000 {
			b.versus("index_"+c.name, took, "ms", "indexing 10,000 pages", before)
		} else {
			b.alone("index_"+c.name, took, "ms")
		}
		before = took
	}
	return nil
}

// curve prints how long searches of pages take. It returns how long indexing the pages took, in
// milliseconds.
func (b *bench) curve(ctx context.Context, name string, docs []evaluate.Document) (indexed float64, err error) {
	began := time.Now()
	built, err := evaluate.Build(ctx, index.Options{}, docs, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, built.Close()) }()
	indexed = float64(time.Since(began)) / float64(time.Millisecond)
	var asked times
	for _, q := range queries(b.runs(300)) {
		_, took, err := built.Rank(ctx, q, evaluate.TopDepth)
		if err != nil {
			return 0, err
		}
		asked = append(asked, took)
	}
	b.alone("search_"+name+"_p50", asked.median(), "ms")
	b.alone("search_"+name+"_p95", asked.p(0.95), "ms")
	return indexed, nil
}
