// Package remotes keeps spaces in step with their remotes: repositories at GitHub, at another
// git server, or on another disk. It stores the remote of each space, pushes the space's
// commits, and fetches and merges the remote's changes. It reports the state in words for
// people who do not know git.
//
// Call [New], and then [Manager.Start], or [Manager.Load] if no syncs are to be started.
//
// It guarantees:
//
//   - No commit waits for a remote, and none is forgotten: what must still be pushed is
//     derived from the heads of spaces and the known state of their remotes, at the start
//     and after every transfer. A crash or a lost row loses nothing.
//   - A space is only reported as pushed if its head was seen at the remote.
//   - No change of either side is dropped. Everybody who uses the space is notified once
//     of the decisions of a merge, which stay readable in its message.
//   - Each space has one sync at a time, the number of all syncs is limited, and failing
//     remotes never use all of them.
//   - Tokens are stored encrypted, decrypted for one sync, and never part of a Status, a log
//     record or an error. No data of one space's remote appears in another's Status.
//
// Only one Manager per database may run syncs at a time. The database holds everything that
// another process needs to continue: the remotes, how the last sync ended, and the notices.
package remotes
