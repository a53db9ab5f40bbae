package evaluate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// ReadPairs reads a file of queries. Each line contains a query and the path of a page that
// the query should find, with a tab or an arrow (→) between them. Several lines with the same
// query name several pages. ReadPairs ignores blank lines, and lines that begin with # and
// contain neither a tab nor an arrow. The caller adds the documents.
func ReadPairs(file string) (*Collection, error) {
	c := &Collection{}
	at := map[string]int{}
	err := eachLine(file, func(l textLine) error {
		if !utf8.Valid(l.text) {
			return lineError(file, l.number, "it is not valid UTF-8")
		}
		query, page, ok := cutPair(string(l.text))
		if !ok {
			if bytes.HasPrefix(l.text, []byte("#")) {
				return nil
			}
			return lineError(file, l.number, "it has neither a tab nor an arrow (→) between a query and a path")
		}
		if query == "" || page == "" {
			return lineError(file, l.number, "its query or its path is empty")
		}
		path, err := space.ParsePath(strings.TrimPrefix(page, "./"))
		if err != nil {
			return lineError(file, l.number, "%s", strings.TrimSuffix(fault.PublicOf(err), "."))
		}
		i, there := at[query]
		if !there {
			i = len(c.Queries)
			at[query] = i
			c.Queries = append(c.Queries, Query{ID: query, Text: query, Grades: Grades{}})
		}
		c.Queries[i].Grades[string(path)] = 1
		return nil
	})
	if err == nil && len(c.Queries) == 0 {
		err = fault.New(fault.Invalid, "%s has no queries.", filepath.Base(file))
	}
	return c, err
}

// cutPair splits a line at its first tab, or else at its last arrow.
func cutPair(line string) (query, page string, ok bool) {
	query, page, ok = strings.Cut(line, "\t")
	if !ok {
		i := strings.LastIndex(line, "→")
		if i < 0 {
			return "", "", false
		}
		query, page = line[:i], line[i+len("→"):]
	}
	return strings.TrimSpace(query), strings.TrimSpace(page), true
}

// Relevant returns the documents that at least one query should find, sorted.
func (c *Collection) Relevant() []space.Path {
	var all []space.Path
	for _, q := range c.Queries {
		for id := range q.Grades {
			all = append(all, space.Path(id))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Missing adds a note about the relevant documents that are missing, which absent lists. where
// names the place where they are missing. Missing returns an error if all relevant documents
// are missing, because then the paths belong to another collection.
func (c *Collection) Missing(absent []space.Path, where string) error {
	if len(absent) == 0 {
		return nil
	}
	all := c.Relevant()
	if len(absent) == len(all) {
		return fault.New(fault.Invalid, "None of the %d pages that the queries name is in %s (for example %q is not). Are the paths relative to it?", len(all), where, string(absent[0]))
	}
	c.note(len(absent), "page is not in "+where+"; it counts as one that is not found", "pages are not in "+where+"; they count as not found", string(absent[0]))
	return nil
}

// AddDirectory adds the files of a directory as documents, with their paths as ids.
// It leaves out links and everything that is named .git.
func (c *Collection) AddDirectory(dir string) error {
	if st, err := os.Stat(dir); err != nil {
		return unreadable(dir, err)
	} else if !st.IsDir() {
		return fault.New(fault.Invalid, "%s is not a directory.", dir)
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return unreadable(dir, err)
	}
	var refused oddity
	there := map[space.Path]bool{}
	err = filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Name() == ".git" && file != root {
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if !e.Type().IsRegular() {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		path, err := space.ParsePath(filepath.ToSlash(rel))
		if err != nil {
			refused.add(rel)
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		there[path] = true
		c.Documents = append(c.Documents, Document{
			ID: string(path), Path: path, Size: info.Size(),
			Read: func() ([]byte, error) {
				data, err := os.ReadFile(file)
				if errors.Is(err, fs.ErrNotExist) {
					return nil, nil // the file was removed since it was listed
				}
				return data, err
			},
		})
		return nil
	})
	if err != nil {
		return unreadable(dir, err)
	}
	c.note(refused.n, "file has a name that no space may have, and is left out", "files have names that no space may have, and are left out", refused.first)
	if len(c.Documents) == 0 {
		return fault.New(fault.Invalid, "%s has no files.", dir)
	}
	var absent []space.Path
	for _, p := range c.Relevant() {
		if !there[p] {
			absent = append(absent, p)
		}
	}
	return c.Missing(absent, fmt.Sprintf("the directory %s", filepath.Base(dir)))
}
