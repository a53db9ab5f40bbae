// Package diff finds what differs between two sequences, such as the lines
// of two texts or the words of two lines. It is pure, and its work is counted:
// nothing that somebody wrote makes it take longer than its caller allows.
package diff
