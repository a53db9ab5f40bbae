// Package evaluate measures the ranking of a search against judgments: collections in the
// layout of BEIR, files of queries with their pages, and queries that are generated from a
// documentation tree.
//
// The measures are those of trec_eval (github.com/usnistgov/trec_eval), so that figures can
// be compared with published ones: nDCG with the grade as gain and a discount by the
// logarithm to base 2 of the rank plus 1, average precision over all relevant documents,
// each as the mean over the queries. A grade of 0 or less means that a document is not
// relevant.
package evaluate
