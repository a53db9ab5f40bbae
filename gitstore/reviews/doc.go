// Package reviews asks people to confirm what AIs changed in the files that tell
// every AI how to behave: the instructions and the context of a space, and its
// skills. An AI that was led astray by a page it read could otherwise instruct all
// others.
//
// What waits is derived from the head of a space: a file whose content nobody
// decided about and whose last change an AI's tool made. So no event can be lost,
// and a server that was away has nothing to catch up with. What was found out
// about a content at a path is remembered in the package's own table. Whatever a
// person writes, by a page, a command or git, they have confirmed by that; not what
// they brought back, by an undoing of an undoing as by a restore, that an AI had
// written and nobody kept. A commit from elsewhere that carries trailers of ours
// confirms nothing: whoever made it could write them.
//
// Nothing is kept back meanwhile: git has the former version, and the decision to
// undo puts it back.
package reviews
