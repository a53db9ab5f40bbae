// Package sources keeps the library: what is shared with other people on the
// server, for reading alone. A published space is the first kind of source; a
// directory of it is shown as it was at one commit, the snapshot, under
// /library/docs/<id>.
//
// Call New, Load and then Start. Visible returns what a person may read.
//
// The package promises:
//
//   - Nobody reads a source who is not in its audience. That the publisher still
//     owns the space is looked up each time, so that giving the space away,
//     removing its owner, narrowing the audience and unpublishing end reading at
//     the next call, and take the files out of running sandboxes.
//   - A snapshot is whole: readers and sandboxes see the one before until the new
//     one is there, and keep the one that they began with.
//   - Nothing outside of the published directory can be reached through it, by
//     any path or link: paths are looked up in the list of the snapshot's files,
//     and links that lead out of the directory are left out of that list.
//   - What this package writes to disk it alone ever writes. It is derived, and
//     made again at every start.
package sources
