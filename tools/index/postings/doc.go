// Package postings stores the index of one collection in a SQLite database: the
// documents, their passages, and the inverted index of their terms.
//
// [Build] makes a database and [Open] opens one. [Database.Update] changes it in one
// transaction, which also names the commit that it then holds. A search reads a
// [Snapshot], so all of its answer is from one commit.
//
// # Format
//
// The inverted index consists of segments (see the package segment), whose rows are
// blobs in the same database. A build writes one segment, or several if one does not
// fit into memory. An update adds a small one with the new passages and with the terms
// of the removed ones. If an update makes too many segments, it merges some in the same
// transaction, so that there are a few for each power of four. Readers never wait for
// that.
//
// In memory are 12 bytes for each passage, the first term of each 4 KB of dictionary,
// and a [Cache] of the rows that were used last.
//
// The format is our own because it is faster. With FTS5 (through modernc.org/sqlite) over
// 10,000 generated pages, choosing candidates for 3 to 10 words took 7 ms of processor
// time, for at most 6,000 rows. Segments take 1.3 ms, for all matches. They are a fifth
// smaller, and list the terms with a prefix in order, which the correction of typos needs.
//
// # Damage
//
// Every row has a checksum. An error for which [Damaged] is true means that the file is
// not what this package wrote; the index then builds another one.
package postings
