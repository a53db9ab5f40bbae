// Package syncs keeps sources in step with their upstreams: git repositories, web sites and
// other places outside of the server.
//
// A sync owns a space. It commits what it fetched to the space, and then tells the
// sources.Manager to show that commit. A sync is a durable workflow of four steps:
//
//	check    has upstream changed?
//	fetch    stage every file on disk, and compare the stage with the manifest, which lists
//	         the files of the last complete sync
//	commit   commit the differences between the stage and the space
//	publish  show the commit, and store the manifest
//
// Call New, Load and then Start. Without Start, syncs run only on request.
//
// The package guarantees:
//
//   - Readers see the last complete sync until the next one is complete.
//   - A killed process continues its syncs at the next start. Each step can be repeated: the
//     commit is computed from the head of the space, so that nothing is committed twice.
//   - One sync of a source runs at a time.
//   - A sync that would remove more than half of the files changes nothing until a person
//     confirms it.
//   - A failed sync changes nothing that readers see. The error's code decides when the sync is
//     tried again.
package syncs
