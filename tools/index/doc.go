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
//   - A search never waits for indexing; [Index.Await] does, no longer than its
//     caller allows. Readers never block one another. Every answer names its
//     commit. The search compares that with the current head: an answer that is
//     behind first says so, and by how much, and does not claim that no page has a
//     word.
//   - Nothing that is typed as a query is an error, and nothing that is in a
//     file can stop the file, or another one, from being indexed.
//
// # How it ranks
//
// A document is cut into chunks at its headings. Text becomes terms in Go (see
// the package language), and segments keep which chunks hold a term, and how
// often in which field (see the package segment). A query runs in two steps: each
// database scores all chunks that hold a word of it, by statistics that are
// summed over all databases of the query, so that they answer as one; then the
// best documents are looked at for phrases, proximity and names.
//
// # How it is stored
//
// The postings are our own, in blobs of the same database, so that they and the
// commit that they speak of change in one transaction. Measured against FTS5
// (through modernc.org/sqlite, which is C transpiled to Go) on 10,000 generated
// pages: choosing the candidates of a query of 3 or 10 words took 7 ms of
// processor time, of at most 6,000 rows; of 1, 3 or 10 words it takes 1.3 ms, of
// all that match (one pass, without feedback). The database is a fifth
// smaller; and the terms of a prefix are walked through in order, for words with
// a slip of the keys.
//
// A build writes one segment, or several where one would not fit into memory
// (Options.BuildBytes); an update adds a small one with the new chunks and the
// terms of the chunks that went. Segments are merged within the transaction of
// the update that makes them too many, so that there are a few for each power of
// four, and readers, each in a transaction of its own, never wait for that. What
// is in memory of a database is 12 bytes for each chunk and the first term
// of each 4 KB of dictionary; besides, rows used last
// are kept, of all databases together no more than Options.CacheBytes.
package index
