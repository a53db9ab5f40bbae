// Package parse extracts from files what search needs: the front matter of a page, its
// lines with their headings, its chunks, and the terms of each chunk. It reads Markdown,
// HTML, notebooks, transcripts, source code and plain text.
//
// To index a file, call [NewBuilder] and then [Analyzer.Analyse]. For the words of a query,
// call [NewAnalyzer]. [Sections] and [Title] need no analyzer.
package parse
