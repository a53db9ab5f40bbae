package library

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// maxDirs limits the directories that an owner can choose from. The deepest are left out.
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
		if !space.HiddenPath(dir) {
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
		out = append(out, dirChoice{dir, dirName(web.ShownPath(dir, 120)) + " (" + web.Plural(files[dir], "1 file", "%d files") + ")", dir == chosen})
	}
	return append(out, dirChoice{"", "The whole space (" + web.Plural(len(all), "1 file", "%d files") + ")", chosen == ""}), more, nil
}
