package library

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"satchel/internal/service"
	"satchel/web"
)

// maxDirs limits the directories that an owner can choose from. Those near the top come first.
const maxDirs = 300

// dirChoice is a directory that an owner can publish.
type dirChoice struct {
	Path, Text string
	Selected   bool
}

// directoriesOf lists the directories of a space, by path, and the whole space last. more reports
// that the list is not complete.
func directoriesOf(v *web.Visit, m service.View, chosen string) (out []dirChoice, more bool, err error) {
	head, err := m.Head(v.R.Context())
	if err != nil {
		return nil, false, err
	}
	all, err := m.Files(v.R.Context(), head, "")
	if err != nil {
		return nil, false, err
	}
	files := map[string]int{}
	for _, e := range all {
		for dir := path.Dir(string(e.Path)); dir != "."; dir = path.Dir(dir) {
			files[dir]++
		}
	}
	var dirs []string
	for dir := range files {
		if !strings.HasPrefix(dir, ".") && !strings.Contains(dir, "/.") {
			dirs = append(dirs, dir)
		}
	}
	slices.SortFunc(dirs, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), strings.Compare(a, b))
	})
	if more = len(dirs) > maxDirs; more {
		dirs = dirs[:maxDirs]
	}
	slices.Sort(dirs)
	chosen = strings.Trim(chosen, "/")
	for _, dir := range dirs {
		out = append(out, dirChoice{dir, dirName(dir) + " (" + filesText(files[dir]) + ")", dir == chosen})
	}
	return append(out, dirChoice{"", "The whole space (" + filesText(len(all)) + ")", chosen == ""}), more, nil
}

func filesText(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}
