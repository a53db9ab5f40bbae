package api

// InLibrary is what tells a path of the library from others.
func InLibrary(p string) (string, error) { return inLibrary(p) }
