//go:build linux

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// benchSearch searches 10,000 pages with queries of 1, 3 and 10 words, beside
// ripgrep over the same tree.
func benchSearch(ctx context.Context, b *bench) error {
	pages := 10_000
	if b.quick {
		pages = 1000
	}
	s, c, err := b.serveOne(ctx, "search")
	if err != nil {
		return err
	}
	defer s.stop()
	defer c.close()
	dir := filepath.Join(b.dir, "search-corpus")
	if err := makeCorpus(dir, pages, 5000); err != nil {
		return err
	}
	const marker = "zyzzyvamarker"
	if err := os.WriteFile(filepath.Join(dir, "knowledge", "marker.md"), []byte("# "+marker+"\n"), 0o644); err != nil {
		return err
	}
	if err := s.importDir(ctx, "ada", dir); err != nil {
		return err
	}
	for {
		text, err := c.call(ctx, "search", map[string]any{"query": marker})
		if err != nil {
			return err
		}
		if strings.Contains(text, "marker.md") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	w := newWords(7)
	var ours, theirs times
	for i := range b.runs(300) {
		n := []int{1, 3, 10}[i%3]
		query := make([]string, n)
		for j := range query {
			query[j] = w.word()
		}
		if err := ours.add(func() error {
			_, err := c.call(ctx, "search", map[string]any{"query": strings.Join(query, " ")})
			return err
		}); err != nil {
			return err
		}
		if i%5 > 0 { // ripgrep takes long; every fifth query, of all lengths, is enough
			continue
		}
		args := []string{"--ignore-case", "--count-matches"}
		for _, q := range query {
			args = append(args, "-e", q)
		}
		if err := theirs.add(func() error {
			out, err := exec.CommandContext(ctx, "rg", append(args, dir)...).Output()
			if err != nil && len(out) == 0 && exitCode(err) != 1 { // 1: no match
				return err
			}
			return nil
		}); err != nil {
			return err
		}
	}
	b.versus("search_p50", ours.median(), "ms", "ripgrep over the same tree", theirs.median())
	b.versus("search_p95", ours.p(0.95), "ms", "ripgrep over the same tree", theirs.p(0.95))
	return nil
}

func exitCode(err error) int {
	if e, ok := err.(*exec.ExitError); ok {
		return e.ExitCode()
	}
	return -1
}
