// Package crun runs sandboxes as containers of the host's own kernel, with crun
// or runc: a space.Runtime for those who want native speed and accept that one
// bug of the kernel is a way out.
//
// The bundle is gVisor's, and so is the agent inside. What takes gVisor's place
// as the wall is put into the bundle here:
//
//   - every sandbox is in a user namespace of its own, over ids of the host that
//     nobody has: root inside is nobody outside, and no two sandboxes share a
//     user. All other namespaces are new too, and the network is empty;
//   - process 1 itself runs under a list of the system calls that it and
//     ordinary programs need; every other call is told to be missing. Commands
//     have the agent's filter on top;
//   - what /proc tells of the machine is masked as far as it can be; there is no
//     /sys; devices are null, zero, full, random, urandom, tty and pseudo
//     terminals;
//   - memory, processes and processors are bounded by cgroups, without which
//     Check refuses.
//
// It takes root, because process 1 and the commands must be different users: an
// ordinary user may map no one but himself, and a command of that one user could
// kill process 1 or write into its protocol.
//
// The server is the containers' owner. Their mounts are made in a mount
// namespace of its own, that of one thread, and are gone with it. When the
// server dies, however it does, the agents see the end of their input and end,
// and their containers with them; whatever does not is destroyed by Reap, at the
// latest when the next server starts.
package crun
