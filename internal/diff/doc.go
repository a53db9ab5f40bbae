// Package diff finds the differences between two sequences, such as the lines of two texts
// or the words of two lines. It has no side effects. It counts its work, so that no input
// makes it take longer than its caller allows.
package diff
