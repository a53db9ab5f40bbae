package protocol

// Places inside a sandbox. The runtime mounts Exe, Lower, Git and Library. The agent mounts the
// others.
const (
	// Exe is the read-only program satchel-agent, which is process 1.
	Exe = "/.satchel/agent"
	// Lower is the read-only checkout, the lower layer of the overlay that the agent
	// mounts on SpaceDir. Only root can see it. Lower, Git and Library each have a mount
	// of their own. The runtime attaches them in these mounts while the sandbox runs, before
	// the host sends Boot.
	Lower = "/.satchel/lower/" + Attached
	// Git is the read-only git view, which the agent binds to SpaceDir/.git.
	Git = "/.satchel/git/" + Attached
	// Library is the library, which the agent binds to LibraryDir.
	Library = "/.satchel/library/" + Attached
	// Attached is the name of Lower, Git and Library in their mounts.
	Attached = "attached"
	// Upper is the mount point of the tmpfs with the overlay's upper layer.
	Upper = "/.satchel/upper"
	// SpaceDir is the working directory of commands.
	SpaceDir = "/space"
	// LibraryDir is the read-only library.
	LibraryDir = "/library"
	// RunDir is the agent's tmpfs; commands can read it.
	RunDir = "/run/satchel"
	// TmpDir is a small tmpfs for commands.
	TmpDir = "/tmp"
)

// The users inside a sandbox. The agent is root inside and nobody outside.
const (
	CommandUID  = 1000 // runs the commands of the tool bash
	ReadOnlyUID = 1001 // runs the commands of the tool bash_readonly
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
