// Package facts reads and corrects memory facts, the files memory/<type>/<key>.md. A
// correction changes only the fields that it names. Any bytes may be passed as a file.
package facts
