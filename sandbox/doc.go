// Package sandbox runs commands for people who do not trust each other.
//
// A [Pool] keeps at most one sandbox for each user and space. It starts the sandbox for
// the first command, updates it to the space's head before each command, and commits
// the changes after the command. It stops a sandbox when it is idle, when others need its
// memory, and when the server ends. Call [New], then [Pool.Reap], [Pool.Exec] for each
// command, and [Pool.Close] at the end.
//
// A Pool promises that
//   - a change is committed (and durable) before the answer that names it;
//   - a file that cannot be committed is stored, if possible, before the answer that
//     names it. The user's next sandbox gets it back, and every answer names it until it
//     is committed, deleted or dropped. It never replaces a newer file of the space, and
//     no newer file of the space replaces it;
//   - commits of others reach a sandbox before its next command, and never remove a
//     file or directory that a running command uses;
//   - the first answer of a sandbox that replaces another says that background
//     processes and /tmp are gone;
//   - nothing from a sandbox is trusted: every path, link and size is validated
//     before it becomes a change set;
//   - if several commands run at once, each answer names every commit since its command
//     began, whichever command caused the commit;
//   - users are served in turn: of all the starts that one user waits for, at most one
//     comes before the next start for another user.
//
// A [satchel/internal/space.Runtime] isolates the sandboxes.
package sandbox
