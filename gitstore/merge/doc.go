// Package merge puts two histories, or two versions of a text, together so that no
// side loses anything. Call [Commits], or [Texts.Merge].
//
// git merges the commits three ways, with renames ("merge-tree"), in a repository of its
// own that borrows the space's objects. If git finds no conflict, its result is taken.
// The markers that git would write into conflicting files are of no use here. Conflicts
// are resolved so:
//
//	both edited the same lines       theirs keeps the path; ours is beside it as
//	(or a binary, or a link)         name.conflict-<commit>.ext, with their commit
//	both added it, differently       likewise; the same content once, with their mode
//	one edited, one deleted          the edit stays, and is reported
//	one renamed, one deleted         the renamed file stays, and is reported
//	both renamed it, differently     both names stay, each with its own content
//	both renamed to one name         as if both had added it
//	a file here, a directory there   theirs keeps the name; ours gets a marked name, or
//	                                 a marked directory
//	a submodule on either side       theirs; ours is in the history
//	ours as the space began, and     theirs alone, and is reported
//	no commit in common
//
// Nothing in the trees runs: the repository has no configuration of theirs, and
// attributes are read from none of them.
package merge
