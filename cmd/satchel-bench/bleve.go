//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/search/query"
)

// bleveBatch is how many passages bleve is handed at once; more are no faster.
const bleveBatch = 1000

// bleveIndex is what a Go program would build on bleve for pages: passages cut
// at headings, with the page's title, the heading and the text as fields of
// their own, analysed as English and not stored.
type bleveIndex struct {
	dir   string
	index bleve.Index
}

func bleveMapping() mapping.IndexMapping {
	field := bleve.NewTextFieldMapping()
	field.Analyzer, field.Store, field.IncludeTermVectors, field.IncludeInAll, field.DocValues = en.AnalyzerName, false, false, false, false
	doc := bleve.NewDocumentStaticMapping()
	for _, name := range []string{"title", "heading", "body"} {
		doc.AddFieldMappingsAt(name, field)
	}
	m := bleve.NewIndexMapping()
	m.DefaultMapping = doc
	return m
}

// buildBleve indexes n pages of the corpus.
func buildBleve(dir string, pages []string) (_ *bleveIndex, err error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	x, err := bleve.New(dir, bleveMapping())
	if err != nil {
		return nil, fmt.Errorf("bleve: %w", err)
	}
	defer func() {
		if err != nil {
			x.Close()
		}
	}()
	batch := x.NewBatch()
	for i, page := range pages {
		for j, p := range passages(page) {
			if err := batch.Index(fmt.Sprintf("%d#%d", i, j), p); err != nil {
				return nil, fmt.Errorf("bleve: %w", err)
			}
		}
		if batch.Size() >= bleveBatch || i == len(pages)-1 {
			if err := x.Batch(batch); err != nil {
				return nil, fmt.Errorf("bleve: %w", err)
			}
			batch.Reset()
		}
	}
	return &bleveIndex{dir, x}, nil
}

// passage is one document of bleve's.
type passage struct {
	Title   string `json:"title"`
	Heading string `json:"heading"`
	Body    string `json:"body"`
}

// passages cuts a page of the corpus at its headings.
func passages(page string) []passage {
	parts := strings.Split(page, "\n## ")
	title := ""
	for line := range strings.Lines(parts[0]) {
		if t, ok := strings.CutPrefix(line, "title: "); ok {
			title = strings.TrimSpace(t)
		}
	}
	all := []passage{{Title: title, Body: parts[0]}}
	for _, part := range parts[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		all = append(all, passage{title, heading, body})
	}
	return all
}

// search asks for the best ten passages, with the weights of the fields that did
// best on real documentation.
func (b *bleveIndex) search(words string) error {
	var any []query.Query
	for name, boost := range map[string]float64{"title": 4, "heading": 2, "body": 1} {
		q := bleve.NewMatchQuery(words)
		q.SetField(name)
		q.SetBoost(boost)
		any = append(any, q)
	}
	_, err := b.index.Search(bleve.NewSearchRequestOptions(bleve.NewDisjunctionQuery(any...), 10, 0, false))
	return err
}

func (b *bleveIndex) close() error {
	if err := b.index.Close(); err != nil {
		return err
	}
	return os.RemoveAll(b.dir)
}
