// Package merge compares texts by lines for the pages: what two people made of
// one text, put together where they touched different places; what changed
// between two texts; and a text that a browser sent, with the line ends that its
// file has. It takes any bytes for text, and its work is bounded, whatever the texts
// are; git merges, by way of the store.
package merge
