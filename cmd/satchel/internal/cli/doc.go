// Package cli is Satchel's command line. [Main] runs one command and prints its answer.
//
// Scripts can rely on the formats in docs/commands.md. Every command has the flags --data, --config
// and --json. With --json, standard output has one JSON value and nothing else. The exit status
// is 0 for success, 2 for wrong usage, and 1 for other errors. An error message on standard error
// says what to do. It is one line, except for a configuration with several mistakes.
package cli
