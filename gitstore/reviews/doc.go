// Package reviews asks people to confirm what AIs changed in the files that steer AIs:
// the resources and the skills of a space. An AI that was led astray by a page it read
// could otherwise instruct all others.
//
// Call New, then Waiting for what waits; Keep and Undo decide it. Call Close at the end.
//
// The rule: a change that came through Satchel from an AI, or through a merge of such a
// commit, waits for a person's review. A change that a person pushed with git or wrote on
// the pages does not. Contents are the same or not: none is compared line by line. A file
// that a merge writes to a path which one side lacks waits too, since it may have lines
// from any path of that side.
//
// The branch's log proves which commits Satchel made, and by which tool. Any other commit
// is a person's, since an AI that uses Satchel cannot push. Trailers that it has prove
// nothing: they can have it wait, where they name the tool of an AI, and never spare it a
// review.
//
// Of every path the package keeps the content that a person last knew there: the
// baseline, which undoing puts back. What a path has otherwise at head waits. A baseline
// moves when a person keeps exactly the content that they were shown, or writes the file.
// It stays where a person changes, moves, restores or merges what waits: nobody was shown
// all that this brings. So nothing can be buried under further changes.
//
// The history is read once, from the commit up to which it was read before, in the
// background and saved in parts, between which others have a turn. So no commit is
// missed, and a server that was away catches up. Nothing is kept back meanwhile.
package reviews
