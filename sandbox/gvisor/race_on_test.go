//go:build race

package gvisor_test

const raceEnabled = true
