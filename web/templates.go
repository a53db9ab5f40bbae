package web

import (
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"

	"satchel/internal/space"
	"satchel/web/render"
)

// fragments is the name of the file with the templates that several pages of a package
// include. Every page can also include the fragments of package web.
const fragments = "fragments.html"

// pageTemplate is the template of a page.
type pageTemplate struct {
	*template.Template
	times bool // the page prints times
}

// baseTemplate parses the layout, the parts and the fragments of package web.
func (s *Site) baseTemplate() (err error) {
	s.templates = map[string]func() (pageTemplate, error){}
	s.base, err = template.New("layout").Funcs(template.FuncMap{
		"count":      count,
		"coded":      coded,
		"whole":      whole,
		"client":     space.ClientName,
		"asset":      func(name string) string { return s.assets[name].url },
		"time":       timesAt(s.Now),
		"date":       dateOf,
		"span":       Span,
		"device":     DeviceOf,
		"method":     s.MethodText,
		"adminpages": s.adminTabs,
		"icon":       icon,
		"args":       partArgs,
		"links":      partLinks,
		"initial":    initial,
		"capital":    capital,
		"pairs":      render.Pairs,
		"short":      func(text string) string { return Shorten(text, 80) },
		"path":       func(p any) string { return ShownPath(fmt.Sprint(p), 120) }, // a string or a space.Path
	}).ParseFS(files, "templates/layout.html", "templates/shell.html", "templates/parts.html", "templates/"+fragments)
	return err
}

// AddTemplates adds the pages in the directory templates of a package: one for each file,
// named after the file. A page can include fragments of its package and of package web. A
// page is parsed when it is first shown, because all pages together take 4 MB of memory.
func (s *Site) AddTemplates(fsys fs.FS) error {
	list, err := fs.Glob(fsys, "templates/*.html")
	if err != nil {
		return err
	}
	for _, f := range list {
		name := strings.TrimSuffix(path.Base(f), ".html")
		if path.Base(f) == fragments || name == "layout" || name == "shell" || name == "parts" {
			continue
		}
		if _, ok := s.templates[name]; ok {
			return fmt.Errorf("two pages are called %s", name)
		}
		s.templates[name] = sync.OnceValues(func() (pageTemplate, error) { return s.parsePage(fsys, f) })
	}
	return nil
}

// parsePage parses the file of a page, with the fragments of its package.
func (s *Site) parsePage(fsys fs.FS, file string) (pageTemplate, error) {
	t, err := s.base.Clone()
	if err != nil {
		return pageTemplate{}, err
	}
	patterns := []string{file}
	switch _, err := fs.Stat(fsys, "templates/"+fragments); {
	case err == nil:
		patterns = []string{"templates/" + fragments, file}
	case !errors.Is(err, fs.ErrNotExist):
		return pageTemplate{}, err
	}
	if t, err = t.ParseFS(fsys, patterns...); err != nil {
		return pageTemplate{}, err
	}
	return pageTemplate{t, printsTime(t, "layout", map[string]bool{})}, nil
}

var included = regexp.MustCompile(`\{\{template "([^"]+)"`)

// printsTime reports whether a template, or one that it includes, prints a time.
func printsTime(t *template.Template, name string, seen map[string]bool) bool {
	part := t.Lookup(name)
	if seen[name] || part == nil || part.Tree == nil {
		return false
	}
	seen[name] = true
	text := part.Tree.Root.String()
	if strings.Contains(text, "{{time ") || strings.Contains(text, "{{date ") {
		return true
	}
	for _, m := range included.FindAllStringSubmatch(text, -1) {
		if printsTime(t, m[1], seen) {
			return true
		}
	}
	return false
}

// MethodText describes a method with which people sign in, such as "a passkey".
func (s *Site) MethodText(method string) string {
	for _, p := range s.Providers() {
		if p.Name == method {
			return p.Label()
		}
	}
	switch method {
	case "passkey":
		return "a passkey"
	case "link":
		return "a sign-in link"
	case "mail":
		return "a link by mail"
	case "invitation":
		return "an invite"
	case "github":
		return "GitHub"
	case "oidc":
		return "single sign-on"
	}
	return method
}
