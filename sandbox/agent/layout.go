package agent

// Places inside a sandbox. The runtime mounts them; the agent relies on them.
const (
	// Exe is the program satchel-agent, read-only: process 1.
	Exe = "/.satchel/agent"
	// Lower is the read-only checkout, the lower layer of the overlay that the agent
	// mounts on SpaceDir. Only root can see it. Lower, Git and Library each have a mount
	// of their own. The runtime attaches them there while the sandbox runs, before it
	// passes on the boot message.
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
