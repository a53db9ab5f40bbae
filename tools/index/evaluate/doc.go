// Package evaluate measures how well a search ranks, against judgments of what
// ought to be found: collections in the layout of BEIR, files of queries with
// their pages, and queries that are made from a documentation tree itself.
//
// The measures are those of trec_eval (github.com/usnistgov/trec_eval), so that
// figures can be held against published ones: nDCG with the grade as gain and a
// discount by the logarithm to base 2 of the rank plus 1, average precision over
// all relevant documents, each as the mean over the queries. A grade of 0 or
// less says that a document is not relevant.
package evaluate
