// Package oci builds the OCI bundle of a sandbox: the root file system that the sandbox
// sees ([Layout]) and the config.json that a runtime reads ([Config]).
//
// The config.json depends only on the Spec, so a Spec gives the same bytes everywhere. Process 1 is
// the agent, as uid 0 inside, with only the capabilities that it needs. The environment is empty
// and the root is read-only. Of the host, the sandbox sees only the files and directories that the
// Spec lists, and no device or socket.
package oci
