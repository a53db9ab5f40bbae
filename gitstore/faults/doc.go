// Package faults contains only tests: the fault suite of gitstore. Two spaces, each in
// its own server process, share a remote repository with people who push to it. Meanwhile
// connections break, the remote refuses requests, names do not resolve, and processes are
// killed with kill -9. When the faults are over, nothing that was acknowledged may be
// missing.
//
// check_test.go checks what must hold. Schedules come from a seed, which the tests print:
// schedule_test.go says how to run more of them and how to replay one.
package faults
