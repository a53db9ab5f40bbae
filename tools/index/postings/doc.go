// Package postings stores the index of one collection in a SQLite database: the
// documents, their passages, and the inverted index of their terms.
//
// [Build] creates a database and [Open] opens one. [Database.Update] changes the database in
// one transaction, which also records the commit that the database then contains. A search
// reads a [Snapshot], so its whole answer is from one commit.
//
// # Format
//
// The inverted index consists of segments (see the package segment), whose rows are
// blobs in the same database. A build writes one segment, or several if one does not
// fit into memory. An update adds a small segment with the new passages and with the terms
// of the removed passages. If there are then too many segments, the update merges some in
// the same transaction, so that only a few of each size remain (sizes are powers of four).
// Readers never wait for a merge.
//
// A database keeps in memory 12 bytes for each passage, and the first term of each 4 KB of
// dictionary. All databases share a [Cache] of the rows that were used last.
//
// The format is our own because it is faster than FTS5 (through modernc.org/sqlite). Over
// 10,000 generated pages, FTS5 took 7 ms of processor time to choose candidates for 3 to 10
// words, and returned at most 6,000 rows. Segments take 1.3 ms and return all matches. They
// are also a fifth smaller, and list the terms with a prefix in order, which the correction
// of typos needs.
//
// # Damage
//
// Every row has a checksum. An error for which [Damaged] is true means that the file cannot be
// read, or that its content is not what this package wrote. The index then builds another file.
package postings
