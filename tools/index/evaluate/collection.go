package evaluate

import (
	"context"
	"fmt"
	"slices"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Query is a search with the documents that it should find.
type Query struct {
	ID     string
	Text   string
	Grades Grades // by document id
}

// Document is a file that is searched. Read may be called concurrently.
type Document struct {
	ID   string     // the id in judgments
	Path space.Path // the path under which the document is indexed
	Size int64      // about how many bytes Read returns
	// Blob identifies the content. If it is empty, the document counts as different from all
	// others.
	Blob space.BlobID
	Read func() ([]byte, error)
}

// Collection holds documents and queries, in the order in which they were read.
type Collection struct {
	Documents []Document
	Queries   []Query
	// Notes are sentences about oddities of the collection and how they were handled.
	Notes []string
}

// note adds a sentence about an oddity that occurs n times; example is its first occurrence.
func (c *Collection) note(n int, one, many, example string) {
	switch {
	case n == 1:
		c.Notes = append(c.Notes, fmt.Sprintf("1 %s: %.80q.", one, example))
	case n > 1:
		c.Notes = append(c.Notes, fmt.Sprintf("%d %s, such as %.80q.", n, many, example))
	}
}

// oddity counts oddities of a kind and keeps the first example.
type oddity struct {
	n     int
	first string
}

func (o *oddity) add(example string) {
	if o.n == 0 {
		o.first = example
	}
	o.n++
}

// judged removes the queries without judgments and adds a note about them. It returns an
// error if no query has judgments.
func (c *Collection) judged() error {
	var without, hopeless oddity
	c.Queries = slices.DeleteFunc(c.Queries, func(q Query) bool {
		if len(q.Grades) == 0 {
			without.add(q.ID)
		} else if q.Grades.relevant() == 0 {
			hopeless.add(q.ID)
		}
		return len(q.Grades) == 0
	})
	c.note(without.n, "query has no judgments and is left out", "queries have no judgments and are left out", without.first)
	c.note(hopeless.n, "query has no relevant document and counts as 0", "queries have no relevant document and count as 0", hopeless.first)
	if len(c.Queries) == 0 {
		return fault.New(fault.Invalid, "No query has judgments, so there is nothing to measure: do the ids of the queries and of the judgments agree?")
	}
	return nil
}

// source is an index.Source whose only commit contains the documents.
type source struct {
	docs  []Document
	blobs map[space.BlobID]int // the index of a document with this content
	// read is called for each document that is read, also concurrently.
	read func()
}

func newSource(docs []Document, read func()) *source {
	s := &source{docs: docs, blobs: make(map[space.BlobID]int, len(docs)), read: read}
	for i := range docs {
		s.blobs[s.blob(i)] = i
	}
	return s
}

// blob returns an id of a document's content. If the document has no Blob, the id is made from
// the document's number, because documents do not change during an evaluation.
func (s *source) blob(i int) space.BlobID {
	if b := s.docs[i].Blob; b != "" {
		return b
	}
	return space.BlobID(fmt.Sprintf("%040x", i+1))
}

const onlyCommit = space.CommitID("0000000000000000000000000000000000000001")

func (s *source) Head(context.Context, space.SpaceID) (space.CommitID, error) { return onlyCommit, nil }

func (s *source) Diff(ctx context.Context, id space.SpaceID, from, to space.CommitID) ([]space.FileChange, error) {
	if from == to {
		return nil, nil
	}
	files, err := s.Files(ctx, id, to, "")
	out := make([]space.FileChange, len(files))
	for i, f := range files {
		out[i] = f.Added()
	}
	return out, err
}

func (s *source) Files(context.Context, space.SpaceID, space.CommitID, space.Path) ([]space.Entry, error) {
	files := make([]space.Entry, len(s.docs))
	for i, d := range s.docs {
		files[i] = space.Entry{Path: d.Path, Blob: s.blob(i), Size: d.Size}
	}
	return files, nil
}

func (s *source) ReadBlob(_ context.Context, _ space.SpaceID, b space.BlobID) ([]byte, error) {
	i, ok := s.blobs[b]
	if !ok {
		return nil, fmt.Errorf("there is no blob %.50q", string(b))
	}
	if s.read != nil {
		s.read()
	}
	return s.docs[i].Read()
}
