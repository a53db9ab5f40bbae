// Package sources keeps the library: directories that people share with others on the server,
// read-only. A source is a published directory of a space. The library shows the directory at
// one commit, the snapshot, under /library/docs/<id>.
//
// Call New, Load and then Start. Visible returns the sources that a person may read.
//
// The package guarantees:
//
//   - Only the audience of a source can read it. Each call checks that the publisher
//     still owns the space. So giving the space away, removing its owner, narrowing
//     the audience and unpublishing end reading at the next call, and remove the
//     files from running sandboxes.
//   - A snapshot is complete: readers and sandboxes see the previous one until the
//     new one is ready, and a call keeps the snapshot with which it began.
//   - No path or link reaches a file outside of the published directory: paths are
//     looked up in the list of the snapshot's files, which omits links that lead out
//     of the directory.
//   - Nothing else writes the files that this package writes to disk. They are
//     derived, and rebuilt at every start.
package sources
