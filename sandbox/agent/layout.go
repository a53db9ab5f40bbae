package agent

// Places inside a sandbox. The runtime mounts them; the agent relies on them.
const (
	// Exe is the satchel binary, read-only. Process 1 is `Exe agent`.
	Exe = "/.satchel/agent"
	// Lower is the checkout, read-only, the lower layer of the overlay that the
	// agent mounts on SpaceDir. Only root can see it.
	Lower = "/.satchel/lower"
	// Git is the read-only git view, which the agent binds to SpaceDir/.git.
	Git = "/.satchel/git"
	// Upper is where the agent mounts the tmpfs with the overlay's upper layer.
	Upper = "/.satchel/upper"
	// SpaceDir is the working directory of commands.
	SpaceDir = "/space"
	// LibraryDir is the read-only library.
	LibraryDir = "/library"
	// RunDir is the agent's tmpfs; commands can read it.
	RunDir = "/run/satchel"
	// TmpDir is a small tmpfs of the commands'.
	TmpDir = "/tmp"
)

// The users inside. The agent is root inside and no one outside.
const (
	CommandUID  = 1000 // bash
	ReadOnlyUID = 1001 // bash_readonly
)

// Command is the first argument with which the binary becomes the agent.
const Command = "agent"

// Capabilities is what process 1 needs, as bounding, effective and permitted
// sets, by the names of the OCI runtime specification; inheritable and ambient
// sets stay empty. Commands get none of them.
//
// SYS_ADMIN mounts the space and makes private mount namespaces; SETUID,
// SETGID and SETPCAP turn root into a command's user with an empty bounding
// set; KILL ends commands; SYS_PTRACE tells which files they have open; CHOWN,
// DAC_OVERRIDE, FOWNER and MKNOD are what the overlay, which acts with the
// rights of whoever mounted it, copies up and hides files with.
var Capabilities = []string{
	"CAP_CHOWN",
	"CAP_DAC_OVERRIDE",
	"CAP_FOWNER",
	"CAP_KILL",
	"CAP_MKNOD",
	"CAP_SETGID",
	"CAP_SETPCAP",
	"CAP_SETUID",
	"CAP_SYS_ADMIN",
	"CAP_SYS_PTRACE",
}
