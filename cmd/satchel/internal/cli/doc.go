// Package cli is Satchel's command line: it reads arguments, calls what does
// the work and prints the answer. It promises scripts the forms of
// docs/commands.md: --data, --config and --json everywhere, one JSON value on
// standard output with --json and nothing else there, exit status 0 for
// success, 2 for wrong usage and 1 for the rest, with one line on standard
// error that says what to do.
package cli
