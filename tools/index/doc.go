// Package index searches collections. It keeps one database for each collection (a space or
// a published source), follows the commits of the collection, and answers a query over
// several collections as if they were one.
//
// [Open] opens an Index, [Index.Follow] keeps it up to date, and [Index.Search] answers
// queries.
//
// # Promises
//
//   - The index is only a cache of the object store. A missing, damaged or outdated
//     database is rebuilt from a [Source] into a new file. If possible, the old one
//     answers until the new one is complete.
//   - A database records its commit in the transaction that writes its content, so after a
//     crash it is at the old or the new commit.
//   - A search never waits for indexing. [Index.Await] does, but no longer than its caller
//     allows. Readers never block one another. Every answer names its commit, which is
//     compared with the current head. If the index is behind, the answer first says how
//     far, and does not claim that no page has a word.
//   - No query is an error, and no file can prevent itself or another from being indexed.
//
// # Stages
//
// parse splits a file into chunks at its headings and converts them to terms. query parses
// the query language. postings stores documents and terms. rank finds the documents for a
// query. present converts them to hits. semantic adds vectors if an embedding model is
// configured.
package index
