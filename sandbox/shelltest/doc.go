// Package shelltest proves, in tests alone, that bash in a sandbox is the bash
// that people expect: scripts of every kind give what the machine's own bash
// gives, byte for byte, and what surrounds them (environment, identity, limits,
// jobs, git, refusals) is what a person at a shell would count on. It holds no
// code but tests, over real sandboxes and a real store.
package shelltest
