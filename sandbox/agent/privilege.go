package agent

// The two kinds of users in a sandbox, and what separates them.
//
// The agent is process 1 and uid 0 of the sandbox. Outside the sandbox, this uid is
// nobody. The agent has only Capabilities. Commands run as CommandUID or ReadOnlyUID,
// with no capability in any set, an empty bounding set, no_new_privs, a group that marks
// their processes, and the filter of seccompFilter. A command cannot signal or inspect
// the agent, or reach its pipes.
//
// As uid 0 the agent does only this:
//
//	at its start (boot)        mounts the space, the two tmpfs, /tmp; covers its own directory
//	per kind of command        creates the private mount namespace of read-only commands (prepareThread)
//	per command (fork, run)    starts bash as the command's user, passes it its text and its output
//	while a command runs       reads its pipes, keeps its output and status under RunDir
//	at a command's end         looks for its processes in /proc and kills them (killTree)
//	at a collection            lists directories of the upper layer and stats what is in them
//	at an application          stats the upper layer; looks at what commands have open (findUse)
//
// As uid 0 it opens no file that a command created, and writes into no directory that a
// command can write to. Instead, a thread with CommandUID and no effective capability
// (userThread) reads the content of changed files and writes the files of a newer head.
// The thread opens files beneath an open directory, follows no link and never blocks. So
// names, links, FIFOs and devices of a command lead only to what the command can open
// itself.
//
// The only data that the agent reads as uid 0 are the host's frames, the names in the
// upper layer, the output of commands, and /proc.

// The users inside. The agent is root inside and nobody outside.
const (
	CommandUID  = 1000 // bash
	ReadOnlyUID = 1001 // bash_readonly
)

// Capabilities are the bounding, effective and permitted sets of process 1, by the names
// of the OCI runtime specification. Its inheritable and ambient sets are empty. For each
// capability, a test fails without it.
var Capabilities = []string{
	"CAP_CHOWN",        // gives a command its home, its output's pipes and, by the overlay, its copied-up files
	"CAP_DAC_OVERRIDE", // lists and stats what a command has made inaccessible to others
	"CAP_FOWNER",       // changes modes and times for a file's owner, which the overlay does as the agent
	"CAP_KILL",         // ends commands
	"CAP_SETGID",       // gives a command its group and its mark
	"CAP_SETPCAP",      // empties a command's bounding set
	"CAP_SETUID",       // turns root into a command's user
	"CAP_SYS_ADMIN",    // mounts, and reads the overlay's marks
	"CAP_SYS_PTRACE",   // sees which files a command has open
}
