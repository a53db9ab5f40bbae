// Package attacks contains only tests. Each test plays an attacker who controls what runs in a
// sandbox, first as a command's user, then as the agent, which runs the commands. It attacks the
// whole stack (pool, store, gVisor). It then looks for harm outside of the sandbox: in the host's
// files, processes and network, and in the data of other users. docs/security.md lists the test
// of each attack.
package attacks
