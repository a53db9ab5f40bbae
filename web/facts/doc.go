// Package facts reads and corrects memory facts, the files memory/<type>/<key>.md
// (DESIGN section 12), for the pages. A correction leaves all that it is not about
// as its writer wrote it. The package is pure, and takes any bytes for a file.
package facts
