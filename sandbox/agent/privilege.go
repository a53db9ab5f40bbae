package agent

// Two users, and what stands between them.
//
// The agent is process 1 and uid 0 of the sandbox (outside it is nobody), with
// Capabilities and no more. Commands are CommandUID or ReadOnlyUID with no
// capability in any set, an empty bounding set, no_new_privs, a group of their
// own that marks them, and the filter of seccompFilter. A command can neither
// signal the agent nor look into it nor reach its pipes.
//
// As uid 0 the agent does this, and nothing else:
//
//	at its start (boot)        mounts the space, the two tmpfs, /tmp; covers its own directory
//	per kind of command        makes the private mount namespace of read-only commands (prepareThread)
//	per command (fork, run)    starts bash as the command's user, hands it its text and its output
//	while a command runs       reads its pipes, keeps its output and status under RunDir
//	at a command's end         looks for its processes in /proc and kills them (killTree)
//	at a collection            lists directories of the upper layer and stats what is in them
//	at an application          stats the upper layer; looks at what commands have open (findUse)
//
// It opens no file that a command made, and writes into no directory that a
// command can write to. Whatever takes that (the content of a changed file, the
// files of a newer head) is done by a thread that is CommandUID with no
// effective capability (userThread), beneath an open directory, through no
// link, without waiting. So a name, a link, a FIFO or a device of a command's
// leads to nothing that the command could not open itself.
//
// The only data that the agent takes in as uid 0 are the host's frames, the
// names in the upper layer, what commands print, and /proc.

// The users inside. The agent is root inside and no one outside.
const (
	CommandUID  = 1000 // bash
	ReadOnlyUID = 1001 // bash_readonly
)

// Capabilities is what process 1 has, as bounding, effective and permitted
// sets, by the names of the OCI runtime specification; inheritable and ambient
// sets stay empty. Each has its reason, and a test that fails without it.
var Capabilities = []string{
	"CAP_CHOWN",        // gives a command its home, its output's pipes and, by the overlay, its copied-up files
	"CAP_DAC_OVERRIDE", // lists and stats what a command has closed to others
	"CAP_FOWNER",       // changes modes and times for a file's owner, which the overlay does as the agent
	"CAP_KILL",         // ends commands
	"CAP_SETGID",       // gives a command its group and its mark
	"CAP_SETPCAP",      // empties a command's bounding set
	"CAP_SETUID",       // makes root a command's user
	"CAP_SYS_ADMIN",    // mounts, and reads the overlay's marks
	"CAP_SYS_PTRACE",   // sees which files a command has open
}
