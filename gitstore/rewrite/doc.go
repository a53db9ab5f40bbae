// Package rewrite makes a new history of an old one, in which files, messages and names are
// what a function makes of them. Call [New] and [Rewriter.Run], then move the refs to what
// [Rewriter.Now] returns, or call [Rewriter.Discard].
//
// Dates stay, and signatures go, since they would no longer be right. Merges keep their
// parents. Commits that become empty are dropped, except a first commit.
package rewrite
