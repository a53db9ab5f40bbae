// Package parse reads files into what search keeps of them: the front matter of a page,
// its lines with their headings, the chunks into which it is cut, and the terms of each
// chunk. It reads Markdown, HTML, notebooks, transcripts, source code and plain text.
//
// Call [NewBuilder] and then [Analyzer.Analyse] for a file that is to be indexed;
// [NewAnalyzer] for the words of a query. [Sections] and [Title] read a page alone.
package parse
