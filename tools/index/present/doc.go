// Package present makes the hits of an answer out of ranked documents.
//
// [Hits] gives each document its metadata and a snippet that shows why it is a hit, and
// gives the best their text, within a budget of tokens ([EstimateTokens]). All text is
// shown without characters that deceive a reader.
package present
