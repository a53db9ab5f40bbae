// Package conversations generates a collection in the manner of LongMemEval: sessions with an
// assistant that contain facts among other talk, and questions about the facts, each in two
// wordings.
//
// The facts and the talk are written by hand (facts.txt, chatter.txt). The talk about software
// comes from pages that the caller passes. The same pages always give the same collection.
// The sessions become pages through an import of Claude's export.
package conversations
