// Package remotes keeps spaces in step with the repositories that their people
// have elsewhere: at GitHub, at any other git server, or on another disk. It
// knows which space has which remote, pushes what was committed, fetches and
// merges what came to the remote, and tells how that goes in words for people
// who know no git.
//
// It promises:
//
//   - No commit waits for a remote, and none is forgotten: what is left to push
//     is derived from the heads of spaces and what is known of their remotes, at
//     start and after every transfer. A crash or a lost row loses nothing.
//   - A space is told to be pushed only where its head is what the remote was
//     seen to have.
//   - Nothing that came from either side is dropped. What a merge had to decide
//     is told once to every person who uses the space, and stays readable in the
//     merge's message.
//   - One sync at a time per space, a bounded number over all, and remotes that
//     fail never take all of these.
//   - Tokens are sealed where they are kept, opened for one transfer and never
//     part of a Status, a log record or an error. Nothing of one space's remote
//     appears in another's Status.
//
// One Manager per database runs syncs at a time; what another process would
// need to take over (remotes, how the last sync ended, notices) is in the
// database.
package remotes
