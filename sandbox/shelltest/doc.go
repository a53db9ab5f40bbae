// Package shelltest contains only tests. They prove that bash in a sandbox is the bash
// that people expect. Scripts of every kind give the same bytes as the machine's own
// bash. The surroundings (environment, identity, limits, jobs, git, refusals) are what a
// person at a shell counts on. The tests use real sandboxes and a real store.
package shelltest
