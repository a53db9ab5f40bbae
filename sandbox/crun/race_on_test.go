//go:build race

package crun_test

const raceEnabled = true
