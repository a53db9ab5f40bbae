// Package sandbox runs commands for people who do not trust each other.
//
// A [Pool] keeps at most one sandbox for each user and space: it starts it on
// the first command, brings it up to the space's head before each one, commits
// what the command changed after it, and stops it when it idles, when others
// need the room, or when the server ends.
//
// It promises that
//   - a change is committed (and durable) before the answer that names it;
//   - what cannot be committed is kept, where it can be, before the answer that
//     names it, comes back in the user's next sandbox, and is named in every
//     answer until it is committed, deleted or dropped; it never takes the
//     place of something newer, nor does something newer take its place;
//   - what others commit reaches a sandbox before its next command, and pulls
//     no file or directory from under one that runs;
//   - a sandbox that was replaced is never silently continued: the first
//     answer of each new one says that background processes and /tmp are gone;
//   - nothing that a sandbox sends is trusted: every path, link and size is
//     checked as data before it becomes a change set;
//   - where several commands run at once, each answer names every commit made
//     since it began, whichever command's end made it;
//   - users are served in turn, so that one who asks a lot delays the others
//     by no more than the sandbox that is being started.
//
// How a sandbox is isolated is the business of a [satchel/internal/space.Runtime].
package sandbox
