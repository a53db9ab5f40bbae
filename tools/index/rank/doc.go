// Package rank finds the documents that answer a query, best first.
//
// [Ranker.Start] plans a search and [Run.Rank] performs it:
//
//  1. The plan turns the words of the query into terms: stems in the query's language,
//     identifiers, names of sources, and similar words for typos (plan.go, lexicon.go,
//     names.go, spelling.go).
//  2. Every database scores all chunks that have a term, with the statistics of all databases
//     together, so that several databases answer as one (retrieve.go, score.go). For a
//     sentence, a second pass adds the words that the best pages share (feedback.go).
//  3. Vectors add pages that say the same in other words (semantic.go).
//  4. Only one of a page's variants in several languages and versions stays (variants.go).
//  5. The best documents are checked for names, phrases and proximity (evidence.go, topic.go),
//     and by a reranking model (rerank.go).
//  6. Copies are left out (copies.go).
//
// [Run.ExplainTerms] completes the [Explanation] of a document's rank.
package rank
