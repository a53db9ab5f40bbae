// Package diff finds the differences between two sequences, such as the lines of two texts
// or the words of two lines. Call Diff for any sequences, and Unified for two texts. The package
// has no side effects. It counts its work, so that no input makes it take longer than its caller
// allows.
package diff
