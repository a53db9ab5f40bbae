package rootfs

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// installed lists the packages of a root file system by dpkg's own records.
func installed(dir string) ([]Package, error) {
	f, err := os.Open(filepath.Join(dir, "var/lib/dpkg/status"))
	if err != nil {
		return nil, fmt.Errorf("reading what is installed: %w", err)
	}
	defer f.Close()
	var all []Package
	var p Package
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		name, value, _ := strings.Cut(in.Text(), ": ")
		switch name {
		case "Package":
			p = Package{Name: value}
		case "Version":
			p.Version = value
		case "Status":
			if value != "install ok installed" {
				p.Name = ""
			}
		case "":
			if p.Name != "" {
				all = append(all, p)
			}
			p = Package{}
		}
	}
	if p.Name != "" {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return all, in.Err()
}
