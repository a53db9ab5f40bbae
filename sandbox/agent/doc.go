// Package agent is the program satchel-agent, which runs as process 1 of every sandbox.
// Call [Serve]. It answers the requests of the server, in the protocol of package protocol,
// over its standard input and output.
//
// The agent mounts the space (a bounded overlay over the read-only checkout), runs commands
// in it as an unprivileged user behind a seccomp filter, reports their changes, and applies
// changes from outside the sandbox.
//
// # Users
//
// There are two kinds of users in a sandbox. The agent is process 1 and uid 0 of the
// sandbox. Outside the sandbox, this uid is nobody. The agent has only
// protocol.Capabilities. Commands run as protocol.CommandUID or protocol.ReadOnlyUID, with
// no capability in any set, an empty bounding set, no_new_privs, a group that marks their
// processes, and the filter of seccompFilter. A command cannot signal or inspect the agent,
// or reach its pipes.
//
// As uid 0 the agent does only this:
//
//	at its start (boot)        mounts the space and all tmpfs; covers its own directory
//	per kind of command        creates the mount namespace of read-only commands (prepareThread)
//	per command (fork, run)    starts bash as the command's user, passes it the text and the pipes
//	while a command runs       reads its pipes, keeps its output and status under protocol.RunDir
//	at a command's end         looks for its processes in /proc and kills them (killTree)
//	at a collection            lists directories of the upper layer, stats entries, reads links
//	at an application          stats the upper layer; looks at what commands have open (findUse)
//
// As uid 0 it opens no file that a command created, and writes into no directory that a
// command can write to. Instead, a thread with CommandUID and no effective capability
// (userThread) reads the content of changed files and writes the files of a newer head.
// The thread opens files beneath an open directory, follows no link and never blocks. So
// names, links, FIFOs and devices of a command lead only to what the command can open
// itself.
//
// The only data that the agent reads as uid 0 are the host's frames, the checkout, the names and
// link targets in the upper layer, the output of commands, and /proc.
package agent
