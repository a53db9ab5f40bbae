package space

import "path"

// Entry is a file or a directory at a commit.
type Entry struct {
	Path Path
	Dir  bool // then only Path is set
	Mode Mode
	Blob BlobID // the file's etag
	Size int64  // in bytes. A damaged file has -1 in a listing of one directory, and 0 elsewhere
}

// Name returns the last part of the path.
func (e Entry) Name() string { return path.Base(string(e.Path)) }

// Added returns the change that adds the file to an empty tree.
func (e Entry) Added() FileChange {
	return FileChange{Path: e.Path, Status: Added, New: e.Blob, NewMode: e.Mode, Size: e.Size}
}
