// Package oci builds the OCI bundle of a sandbox: the root file system that
// it sees ([Layout]) and the config.json that a runtime reads ([Config]).
//
// The result depends only on the input: a Spec gives the same bytes everywhere.
// Process 1 is the agent, as uid 0 inside, with the capabilities that it asks for and no
// others; the environment is empty, the root is read-only and no device, socket
// or file of the host is in it but for the directories that are listed.
package oci
