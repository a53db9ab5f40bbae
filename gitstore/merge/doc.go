// Package merge merges two histories, or two versions of a text, so that neither side
// loses anything. Call [Commits] or [Texts.Merge].
//
// Commits runs git's three-way merge with renames ("merge-tree") in a repository that
// borrows the space's objects. If git finds no conflict, Commits takes its result. It
// does not use the conflict markers that git writes into files, but resolves conflicts
// as follows:
//
//	both edited the same lines       theirs keeps the path; ours is kept beside it as
//	(or a binary, or a link)         name.conflict-<commit>.ext, with their commit
//	both added it, differently       the same; equal contents become one file, with
//	                                 their mode
//	one edited, one deleted          the edited file stays, and is reported
//	one renamed, one deleted         the renamed file stays, and is reported
//	both renamed it, differently     both names stay, each with its own content
//	both renamed to one name         as if both had added it
//	a file here, a directory there   theirs keeps the name; our file or directory gets
//	                                 a marked name
//	a submodule on either side       theirs stays; ours is in the history
//	both changed what a fact says    as if both edited the same lines; but ours keeps the
//	                                 path if the user said it and theirs was inferred or imported
//	no commit in common, and ours    theirs replaces it, and the file is reported
//	has not changed since the space was created
//
// If both sides changed files under memory/, these are merged path by path without renames,
// because facts are short and alike.
//
// The merge runs nothing from the trees: git reads neither configuration nor attributes
// from them.
package merge
