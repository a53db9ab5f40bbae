// Package gitstore keeps spaces: each is a bare git repository, the only truth
// about what its members know. The package turns change sets into commits that
// are on disk before they are acknowledged, answers every read from the object
// store at a named commit, and keeps beside each repository the checkout and
// the git view that sandboxes start from.
//
// It promises:
//
//   - A commit that was returned survives kill -9 and power loss, at three
//     fsyncs. Its objects are one small pack (fsync, and fsync of the pack
//     directory); then the new head is appended to the branch's reflog (fsync).
//     The ref itself and the pack's index are written without fsync: both can
//     be derived again, and are, when a space is opened (see recover.go).
//   - A commit costs O(change): blobs and the touched trees are written,
//     nothing is walked. go-git's worktree is never used, nor is any git command
//     run over files that a sandbox or a remote wrote.
//   - Every path, link and name that goes into a tree by Commit passed
//     space.ParsePath and space.CheckSymlink; every host file is made from
//     objects, by names of one segment, never through a link.
//   - What is read whole is what its name says: an object that the disk damaged is
//     an error, never content.
//   - Reads are safe for concurrent use and never wait for a commit.
//   - What a remote has becomes part of a space without a local commit ever
//     being dropped: Integrate moves head forward or merges, and where both sides
//     changed the same, both are kept (see package merge). What is known of a remote
//     is never more than it has.
//   - What Purge took out of the history is in no file of the space any more
//     when it returns, nor after a crash once the space was opened.
//   - A space that Delete was called for is one that does not exist, to every call
//     and every commit that is not made yet; when it returns, nothing is left of
//     it. After a crash in between it is whole, or as one that never was once
//     the store was opened.
//   - Where the disk is full a change fails as a whole, says so, and can be
//     repeated when there is room.
//
// go-git gives the formats (objects, deltas, diffs); the storage of packs is
// this package's own, because go-git's has no locks and learns of a new pack
// only by reading every index again. The git program does what needs it:
// consolidating packs and receiving foreign history (see gitcmd).
package gitstore
