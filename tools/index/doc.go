// Package index finds the right page first. It keeps one SQLite database per
// collection (a space, or one snapshot of a source), follows a collection from
// commit to commit, and answers queries over several of them as if they were
// one.
//
// # What it promises
//
//   - The index is a cache of the object store and never the truth: a missing,
//     damaged or outdated database is rebuilt from a [Source] into a new file,
//     and the old one, where it can, answers until the new one is whole.
//   - The commit that a database speaks of is written in the same transaction
//     as its content, so that a crash leaves it at one commit or the other.
//   - A query waits for indexing no longer than its caller allows (not at all
//     by default), and readers never block one another.
//     Every answer names the commit that it speaks of and says when that is not
//     the head.
//   - Nothing that is typed as a query is an error, and nothing that is in a
//     file can stop the file, or another one, from being indexed.
//
// # How it ranks
//
// A document is cut into chunks at its headings. Text becomes terms in Go
// (folding, English stemming, identifiers whole and in parts, bigrams for
// scripts without spaces), and FTS5 keeps the terms of each chunk in columns.
// A query runs in two steps: FTS5 picks the best few hundred chunks of each
// database, reading the rare terms first and no more than a bounded number of
// rows; then BM25F over statistics that are summed over all databases of the
// query (FTS5's own bm25 knows one table only), with boosts for phrases,
// proximity and names, orders the documents.
package index
