//go:build !race

package shelltest_test

const raceEnabled = false
