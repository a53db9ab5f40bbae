package syncs

import (
	"context"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Package is what upstream says about the library that a source describes.
type Package struct {
	// Names are the names under which the library is installed.
	Names []string `json:"names,omitempty"`
	// Version is empty if upstream states none.
	Version string `json:"version,omitempty"`
}

// Package returns what the upstream of a source says about its library.
func (m *Manager) Package(src space.Source) Package {
	m.mu.Lock()
	defer m.mu.Unlock()
	var p Package
	if e := m.entries[src.ID]; e != nil && e.row.SpaceID == string(src.Space) && e.row.Package != "" {
		_ = json.Unmarshal([]byte(e.row.Package), &p) // the method text wrote this JSON
	}
	return p
}

// text returns p as it is stored in the database.
func (p Package) text() string {
	b, err := json.Marshal(p)
	if err != nil { // Marshal cannot fail, because p has only strings
		panic(err)
	}
	return string(b)
}

// The limits of a package file and of a name, in bytes, and the limit of the number of names.
const (
	maxPackage      = 64 << 10
	maxPackageName  = 60
	maxPackageNames = 6
)

// packageOf reads the package files at the root of a source. A version in the name of the branch
// takes precedence over that of a file, which is often the version of the next release.
func (m *Manager) packageOf(ctx context.Context, row syncRow, dir string, files []stagedFile) (Package, error) {
	var p Package
	for _, f := range files {
		if !isPackage(string(f.Path)) || f.Size > maxPackage {
			continue
		}
		b, staged, err := content(dir, f)
		if err == nil && !staged {
			b, err = m.o.Store.ReadBlob(ctx, space.SpaceID(row.SpaceID), f.Blob)
		}
		if fault.CodeOf(err) == fault.NotFound { // the space refuses the file
			continue
		}
		if err != nil {
			return p, err
		}
		p.add(readPackage(string(f.Path), b))
	}
	var s struct {
		Branch string `json:"branch"`
	}
	_ = json.Unmarshal([]byte(row.Settings), &s) // most kinds have no branch
	if v := versionIn(path.Base(s.Branch)); v != "" {
		p.Version = v
	}
	return p, nil
}

func isPackage(name string) bool {
	return name == "package.json" || name == "pyproject.toml" || name == "Cargo.toml" || name == "go.mod"
}

// readPackage returns the name and the version that a package file states.
func readPackage(file string, content []byte) (name, version string) {
	switch file {
	case "package.json":
		var p struct{ Name, Version string }
		_ = json.Unmarshal(content, &p) // a damaged file states nothing
		return p.Name, p.Version
	case "go.mod":
		for l := range strings.Lines(string(content)) {
			if module, ok := strings.CutPrefix(strings.TrimSpace(l), "module "); ok {
				module = strings.Trim(strings.TrimSpace(module), `"`)
				if base := path.Base(module); versionIn(base) != "" {
					return path.Base(path.Dir(module)), base
				}
				return path.Base(module), ""
			}
		}
		return "", ""
	}
	// Of TOML, only plain texts in the tables of packages matter.
	in := false
	for l := range strings.Lines(string(content)) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "[") {
			in = l == "[project]" || l == "[package]" || l == "[tool.poetry]"
			continue
		}
		key, value, _ := strings.Cut(l, "=")
		if value = strings.TrimSpace(value); !in || len(value) < 2 || !strings.ContainsRune("\"'", rune(value[0])) {
			continue
		}
		value, _, _ = strings.Cut(value[1:], value[:1])
		switch strings.TrimSpace(key) {
		case "name":
			name = value
		case "version":
			version = value
		}
	}
	return name, version
}

// versionForm matches a version, such as v3, 4.x or release-1.2.3. A suffix is ignored.
var versionForm = regexp.MustCompile(`^(?:v|version[-_]?|release[-_]?)?(\d{1,4}(?:\.(?:\d{1,4}|x)){0,3})(?:[-+.].*)?$`)

// versionIn returns the numbers of a version, as the search index has them, or "" if the text is
// not a version.
func versionIn(text string) string {
	if m := versionForm.FindStringSubmatch(strings.ToLower(text)); m != nil && strings.Trim(m[1], "0.") != "" {
		return m[1]
	}
	return ""
}

// add adds what a package file says. It adds @nuxt/kit as nuxt/kit and as kit.
func (p *Package) add(name, version string) {
	for _, n := range []string{name, path.Base(name)} {
		if n = strings.TrimPrefix(strings.TrimSpace(n), "@"); len(n) < 2 || len(n) > maxPackageName || plain(n) || isGeneric(n) || slices.Contains(p.Names, n) || len(p.Names) == maxPackageNames {
			continue
		}
		p.Names = append(p.Names, n)
	}
	if v := versionIn(version); v != "" && p.Version == "" {
		p.Version = v
	}
}

// isGeneric reports whether many packages have a name, so that it says nothing about the library.
func isGeneric(name string) bool {
	switch strings.ToLower(name) {
	case "root", "monorepo", "workspace", "website", "site", "web", "app", "example", "examples", "test", "src", "core", "ui", "api", "cli", "lib", "book":
		return true
	}
	return false
}
