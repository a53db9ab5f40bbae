// Package facts reads and corrects memory facts, the files memory/<type>/<key>.md. Read reads a
// file, Merge saves a statement in it, and Set changes only the fields that it names. Any bytes
// may be passed as a file.
package facts
