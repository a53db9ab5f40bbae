// Package merge compares and merges texts by lines, for the pages. Three merges the changes
// of two people to a text, using git. Changes lists the differences between two texts.
// Endings gives a text from a browser the line endings of its file. All of them accept any
// bytes, and limit their work.
package merge
