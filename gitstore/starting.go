package gitstore

import (
	"embed"
	"io/fs"

	"satchel/internal/space"
)

//go:embed all:seed
var startingFiles embed.FS

// StartingTree returns what a new space holds: a guide for whoever opens it,
// one instruction file, a context file to fill in, and a small skill.
func StartingTree() space.ChangeSet {
	var cs space.ChangeSet
	root, err := fs.Sub(startingFiles, "seed")
	if err == nil {
		err = fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(root, p)
			cs.Changes = append(cs.Changes, space.Change{Path: p, Content: data})
			return err
		})
	}
	if err != nil {
		panic(err) // the files are in the binary
	}
	return cs
}
