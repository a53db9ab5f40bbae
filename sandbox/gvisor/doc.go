// Package gvisor runs sandboxes in gVisor: it is the default space.Runtime. Call
// [New].
//
// gVisor is a kernel in a process. Every sandbox is two host processes: the sentry, which
// runs the programs, and the gofer, which opens the files of the mounts for it. Both are
// the program satchel-sandbox (package child), which the server does not link but embeds
// (package programs).
//
// One child process, `satchel-sandbox runtime`, owns all containers. The [Runtime] starts
// it when it is first needed, and talks to it over a socket pair (package link). If the
// server is an ordinary user, the child is in a new user namespace, which a running Go
// process cannot enter; if it is root, the child only has its own mount namespace. The one
// user that is mapped in the user namespace is the commands' user, so in both cases the
// checked-out files belong to it. The child's environment is empty and it has only its own
// files, so nothing of the server (secrets in the environment, open files, standard
// streams) can reach a gofer or a sentry. The server survives any failure of the child.
//
// The package promises:
//
//   - a sandbox ends with the child, and the child with the server, however they
//     end; Reap destroys what a power loss or a bug leaves behind;
//   - container ids are 64 hexadecimal digits and are never looked up by prefix;
//   - the host's files are mounted read-only, there is no network, and no Unix
//     socket, FIFO or device of the host can be opened from inside;
//   - if no sandbox can start, Check says why and what to do.
//
// If the server is root and can create cgroups, they limit memory, processes and
// processors. Otherwise a watchdog kills each sandbox whose memory exceeds the limit, and
// only the agent's rlimits apply to processes and processors.
package gvisor
