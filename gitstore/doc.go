// Package gitstore keeps spaces. [Open] opens a store. [Store.Create] creates a space,
// [Store.Commit] changes it, and [Store.Open] reads a file of it.
//
// Each space is a bare git repository, which is the only source of its content. The package
// turns change sets into commits that are durable before they are acknowledged, and serves
// every read from the object store at a named commit. Beside each repository, it keeps a
// checkout and a git view, a read-only .git directory, from which sandboxes start.
//
// It promises:
//
//   - A commit that was returned survives kill -9 and power loss, at the cost of three
//     fsyncs. Its objects are one small pack (fsync, and fsync of the pack directory).
//     Then the new head is appended to the branch's reflog (fsync). The ref and the
//     pack's index are written without fsync, because they are derived again when a
//     space is opened (see recover.go).
//   - A commit costs O(change). It writes blobs and the changed trees. Only the first
//     commit after an opening, an import or a purge also walks head's tree, to count its
//     files. The package never uses go-git's worktree, and runs no git command over
//     files that a sandbox or a remote wrote.
//   - Every path, link and name that Commit puts into a tree has passed
//     space.ParsePath and space.CheckSymlink. Every file of a checkout is written from
//     objects. Its path is entered one segment at a time, never through a link.
//   - Every object that is read completely is verified against its hash. A damaged object is
//     an error, never content.
//   - Reads are safe for concurrent use and never wait for a commit.
//   - Taking a remote's commits never drops a local commit. Integrate moves head
//     forward or merges. If both sides changed the same lines, it keeps both versions
//     (see package merge). A tracking ref never names a commit that the remote did
//     not have.
//   - When Purge returns, no file of the space has the content that it removed from
//     the history. After a crash, this holds once the space is opened.
//   - From the call of Delete on, the space does not exist for any new call, nor for a
//     commit that is not made yet. When Delete returns, nothing of the space is left.
//     After a crash in between, the space is whole or gone once the store is opened.
//   - If the disk is full, a change fails as a whole with an error that says so. The
//     change can be repeated when there is room.
//
// go-git provides the formats (objects, deltas, diffs). This package stores packs
// itself, because go-git has no locks and finds a new pack only by reading every index
// again. The git program consolidates packs and receives foreign history (see gitcmd).
package gitstore
