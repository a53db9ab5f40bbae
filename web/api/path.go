package api

import (
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// libraryDir is the directory of the library for tools and in sandboxes.
const libraryDir = "/library"

// inLibrary converts a caller's path to a path for tools. The caller's path is relative to
// the library; it may also begin with /library. Paths that lead elsewhere are rejected here,
// before a tool sees them, because spaces must not be reachable. The error is a fault.Invalid.
//
// Line numbers, a heading or a glob in the path are kept.
func inLibrary(p string) (string, error) {
	bad := func(why string) (string, error) {
		return "", fault.New(fault.Invalid, "The path %s cannot be used: %s. Paths are relative to the library, such as docs/nuxt/guide.md.", quoted(p), why)
	}
	rest := strings.TrimSpace(p)
	switch {
	case rest == libraryDir || strings.HasPrefix(rest, libraryDir+"/"):
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, libraryDir), "/")
	case strings.HasPrefix(rest, "/"):
		return bad("it is outside of the library")
	}
	for strings.HasPrefix(rest, "./") {
		rest = rest[len("./"):]
	}
	if rest == "." || rest == "/" {
		rest = ""
	}
	if strings.ContainsAny(rest, "\x00\\") {
		return bad("it has a character that no path in the library has")
	}
	if slices.Contains(strings.Split(rest, "/"), "..") {
		return bad("it leads upwards")
	}
	if dir := strings.TrimSuffix(rest, "/"); dir != "" {
		if _, err := space.ParsePath(dir); err != nil {
			return "", err
		}
	}
	return libraryDir + "/" + rest, nil
}

// fromLibrary converts a path of tools to a path for callers. ok is false if the path is
// not in the library; then no answer may contain it.
func fromLibrary(p string) (rel string, ok bool) {
	if p == libraryDir {
		return "", true
	}
	return strings.CutPrefix(p, libraryDir+"/")
}

// libraryPath makes a path absolute. Paths in the metadata of tools may be relative to the
// library.
func libraryPath(p string) string {
	if p == "" || strings.HasPrefix(p, "/") {
		return p
	}
	return libraryDir + "/" + p
}
