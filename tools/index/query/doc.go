// Package query parses the query language of search (docs/search.md): words, phrases,
// exclusions, and qualifiers such as path: and since:. Call [Parse].
package query
