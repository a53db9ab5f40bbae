//go:build race

package shelltest_test

const raceEnabled = true
