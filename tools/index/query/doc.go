// Package query parses the query language of search (docs/search.md): words, phrases,
// what to leave out, and qualifiers such as path: and since:. Call [Parse].
package query
