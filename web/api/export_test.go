package api

// InLibrary exports inLibrary for tests.
func InLibrary(p string) (string, error) { return inLibrary(p) }
