// Package cli is Satchel's command line. [Main] runs one command and prints its answer.
//
// Scripts can rely on the forms in docs/commands.md. Every command has the flags --data, --config
// and --json. With --json, standard output has one JSON value and nothing else. The exit status
// is 0 for success, 2 for wrong usage, and 1 for other errors. An error is one line on standard
// error that says what to do.
package cli
