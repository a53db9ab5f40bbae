// Package trees reads, compares and rewrites the trees of a git repository. Its functions are
// methods of [Reader].
//
// A foreign tree may refer to one subtree many times, so that a pack of one kilobyte
// can hold ten million paths. Walk and Diff stop at a [Budget], and follow directories no
// deeper than [MaxDepth].
package trees
