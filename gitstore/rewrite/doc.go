// Package rewrite writes a new history from an old one: a function rewrites the files,
// messages and names. Call [New] and [Rewriter.Run], then move the refs to the commits
// that [Rewriter.Now] returns, or call [Rewriter.Discard].
//
// Commits keep their dates, but lose their signatures, which would no longer be valid.
// Commits that become empty are dropped, except first commits. Merges keep their
// parents, except those that a dropped commit makes redundant.
package rewrite
