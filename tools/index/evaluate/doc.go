// Package evaluate measures the ranking of a search against judgments: collections in the
// layout of BEIR, files of queries with their pages, and queries that are generated from a
// documentation tree.
//
// [OpenBEIR], [ReadPairs] and [FromDocs] read a collection, [Build] indexes its documents, and
// [Run] measures the ranking.
//
// The measures are those of trec_eval (github.com/usnistgov/trec_eval), so that figures can
// be compared with published figures. In nDCG, the gain is the grade, and the discount is the
// logarithm to base 2 of the rank plus 1. Average precision covers all relevant documents.
// Each figure is the mean over the queries. A document with a grade of 0 or less is not
// relevant.
package evaluate
