// Package gvisor runs sandboxes in gVisor: it is the default space.Runtime. Call
// [New].
//
// gVisor is a kernel in a process. Every sandbox is two host processes: the
// sentry, which runs the programs, and the gofer, which opens the files of the
// mounts for it. Both are the program satchel-sandbox (package child), which the
// server does not link: it has the program embedded (package programs).
//
// One child process, `satchel-sandbox runtime`, owns all containers. The [Runtime]
// starts it when it is first needed and speaks to it over a socket pair (package
// link).
// As an ordinary user the child is in a new user namespace, which a running Go
// process cannot enter; as root it has a mount namespace alone. The one user
// that can be mapped there is the one that commands run as inside, so that what
// the server checks out belongs to them either way. Both ways the
// child's environment is empty and its files are its own, so that nothing of
// the server (secrets in the environment, open files, standard streams) can
// reach a gofer or a sentry; and the server outlives whatever happens there.
//
// What holds:
//
//   - a sandbox ends with the child, and the child with the server, however
//     they die; what a power loss or a bug leaves behind is destroyed by Reap;
//   - container ids are 64 hexadecimal digits and are never looked up by prefix;
//   - the host's files are mounted read-only, there is no network, and no Unix
//     socket, FIFO or device of the host can be opened from inside;
//   - where no sandbox can start, Check says why and what to do.
//
// Limits of memory, processes and processors are cgroups' where the server may
// make them, as root. Elsewhere a watchdog measures the sandbox's memory and
// kills it over the limit; the other two are then the agent's rlimits alone.
package gvisor
