// Package reviews asks people to confirm what AIs changed in the files that tell
// every AI how to behave: the resources and the skills of a space. An AI that was
// led astray by a page it read could otherwise instruct all others.
//
// Of every such path the package keeps the content that a person last knew there:
// the baseline. What waits is what a head has otherwise. So nothing can be buried
// under further changes, and no older version comes back unasked. A baseline moves
// by two things alone: a person keeps the very content that they were shown, or
// wrote the file's whole content themselves, by a page, a command or git. What
// reverts, restores, moves or merges confirms nothing, since nobody was shown all
// that it brings; nor does a commit from elsewhere with trailers of ours, since
// whoever made it could write them. Nor does git elsewhere confirm a content that the
// space had before, at any path, or that waited once and nobody confirmed, or one that
// has enough of the lines of what waited at its path. What was at
// paths that nobody is asked about is looked for in the history, up to a bound; beyond
// it all that git elsewhere brings waits, since else whoever commits often enough
// would make it forgotten. It is looked for in all of the space's history, not in what
// came before that commit: a branch may be older than what it was made of. So what a
// person wrote and somebody had copied out of the resources and skills before that was
// looked at waits too. What was found is kept in memory until there is more of it.
//
// The history is read once, from the commit up to which it was read before, in the
// background and saved in parts, between which others have a turn. So no commit is
// missed, whatever was told of it, and a server that was away catches up.
//
// Nothing is kept back meanwhile: undoing puts the baseline back.
package reviews
