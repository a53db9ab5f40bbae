// Package conversations generates a collection in the manner of LongMemEval: sessions with an
// assistant that hold facts among other talk, and questions about the facts in other words.
//
// The facts and the talk are written by hand (facts.txt, chatter.txt). The talk about software
// comes from pages that the caller passes. The same pages always give the same collection.
// Sessions are pages as an import of Claude's export creates them.
package conversations
