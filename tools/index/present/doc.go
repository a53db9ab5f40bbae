// Package present converts ranked documents to the hits of an answer.
//
// [Hits] gives each document its metadata and a snippet that shows why it is a hit. It
// gives the best documents their text, within a budget of tokens ([EstimateTokens]).
// [Outline] gives less, for a model that reads the answer as Markdown. Both remove from all
// texts the characters that deceive a reader.
package present
