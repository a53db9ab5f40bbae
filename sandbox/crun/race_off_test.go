//go:build !race

package crun_test

const raceEnabled = false
