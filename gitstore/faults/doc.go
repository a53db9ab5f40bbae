// Package faults holds the fault suite of gitstore, which has no code of its
// own: two spaces, each in a server process, share one remote repository with
// people who push to it, while connections break, the remote refuses, names do
// not resolve and processes are killed with kill -9. When all is well again,
// nothing that was acknowledged may be missing.
//
// What is held is written in check_test.go. Schedules come from a seed, which is
// printed: see schedule_test.go for how to run more of them and how to replay
// one.
package faults
