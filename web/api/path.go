package api

import (
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// libraryDir is where the tools and the sandboxes have the library.
const libraryDir = "/library"

// inLibrary turns a path as a caller gives it into the tools' form of it. It is
// relative to the library, which may be written before it. What leads elsewhere
// is refused here, whatever else would refuse it, too: a space must not be
// reachable. The error is a fault.Invalid.
//
// Lines, a heading or the pattern of a glob behind a path stay as they are.
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

// fromLibrary is a path of the tools as callers have it. ok is false for what is
// not in the library, which no answer may name.
func fromLibrary(p string) (rel string, ok bool) {
	if p == libraryDir {
		return "", true
	}
	return strings.CutPrefix(p, libraryDir+"/")
}

// libraryPath is a path as tools write it in metadata: with the library before
// it, or relative to it.
func libraryPath(p string) string {
	if p == "" || strings.HasPrefix(p, "/") {
		return p
	}
	return libraryDir + "/" + p
}
