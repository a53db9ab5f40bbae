// Package conversations generates a collection like LongMemEval: sessions with an assistant
// that contain facts among other talk, and questions about the facts, each in two wordings.
//
// Call [Generate] with pages of documentation, from which the talk about software comes. The facts
// and the other talk are written by hand (facts.txt, chatter.txt). The same pages always give the
// same collection. The sessions become pages through the import of an export in Claude's format.
package conversations
