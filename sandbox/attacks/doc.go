// Package attacks holds no code, only tests: each plays an attacker who owns
// what runs in a sandbox, first as a command's user, then as the agent itself,
// against the whole stack (pool, store, gVisor), and looks for the harm from
// outside: in the host's files, processes and network, and in what other users
// have. docs/security.md lists which attack is which test.
package attacks
