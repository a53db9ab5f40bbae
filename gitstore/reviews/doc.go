// Package reviews asks people to confirm what AIs changed in the files that steer AIs:
// the resources and the skills of a space. An AI that was led astray by a page it read
// could otherwise instruct all others.
//
// Call New, then Waiting for the files that wait; Keep and Undo decide about them. Call
// Close at the end.
//
// The rule: a change that came through Satchel from an AI, or through a merge of such a
// commit, waits for a person's review. A change that a person pushed with git or wrote on
// the pages does not. Contents are compared whole, not line by line. A merge may write a
// file to a path that one side lacks. Such a file waits too, because it may contain lines
// from any path of that side.
//
// The branch's log proves which commits Satchel made, and by which tool. Any other commit
// is a person's, because an AI that uses Satchel cannot push. Its trailers prove nothing:
// if they name an AI's tool, the commit waits, but trailers never exempt a commit from review.
//
// For every path, the package keeps the baseline: the content that a person last knew there.
// Undo restores it. A path whose content at head differs from its baseline waits. A baseline
// moves when a person keeps exactly the content that they were shown, or writes the file. It
// does not move if a person changes, moves, restores or merges a waiting file, since nobody was
// shown the whole result. So further changes cannot hide an earlier one.
//
// The history is read in the background, from the last commit that was read. The state is saved
// in parts, and other spaces have their turn between the parts. So no commit is missed, a
// server that was down catches up, and commits never wait.
package reviews
