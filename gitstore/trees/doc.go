// Package trees reads, compares and rewrites the trees of a git repository.
//
// A tree from elsewhere may name one subtree many times: a pack of a kilobyte holds ten
// million paths that way. Walk and Diff stop at a [Budget], and nothing recurses deeper
// than [MaxDepth].
package trees
