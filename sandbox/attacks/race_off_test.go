//go:build !race

package attacks_test

const raceEnabled = false
