// Package styleguide serves /styleguide, a page that shows every part of the pages. A browser
// test compares pictures of the page. Only builds with the tag conformance have it: see
// package pages.
package styleguide

import (
	"embed"
	"net/http"
	"time"

	"satchel/web"
	"satchel/web/render"
)

//go:embed templates
var templates embed.FS

type body struct {
	Tabs  []web.Link
	Rows  []map[string]any
	Head  []string
	Table [][]string
	Diff  render.Change
	Tree  []web.Node
}

// Register adds the page to a site.
func Register(site *web.Site) error {
	site.Handle("GET /styleguide", web.LimitPage, web.SignedIn, func(v *web.Visit) error {
		return site.Page(v, http.StatusOK, "styleguide", web.Page{Title: "Style guide", Wide: true, Styles: []string{"files.css"}, Done: "Saved", Body: examples(site.Now())})
	})
	return site.AddTemplates(templates)
}

// examples returns example data for the parts of the pages that /styleguide shows.
func examples(now time.Time) body {
	return body{
		Tabs: []web.Link{{Name: "General", URL: "/styleguide", Here: true}, {Name: "Members", URL: "/styleguide?members"}, {Name: "Git remote", URL: "/styleguide?remote"}},
		Rows: []map[string]any{
			{"mark": "Claude Code", "title": "Updated knowledge/deploy.md", "url": "/styleguide", "hint": "Claude Code", "when": now},
			{"icon": "bookmark", "title": "Remembered a preference", "hint": "ChatGPT", "badge": "to confirm", "kind": "warn"},
		},
		Head:  []string{"Fact", "Type", "From"},
		Table: [][]string{{"Prefers window seats", "preference", "ChatGPT"}, {"Wants table tests in Go", "preference", "Claude Code"}},
		Diff:  render.Patch(patch, render.NewBudget()),
		Tree: []web.Node{
			{Name: "knowledge", URL: "/styleguide", Dir: true, Open: true, Children: []web.Node{{Name: "deploy.md", URL: "/styleguide", Here: true}, {Name: "team.md", URL: "/styleguide"}}},
			{Name: "skills", URL: "/styleguide", Dir: true, Children: []web.Node{{Name: "SKILL.md", URL: "/styleguide"}}},
			{Name: "README.md", URL: "/styleguide"},
		},
	}
}

const patch = `@@ -1,3 +1,3 @@
 # Deploy
-Watch the canary for five minutes.
+Watch the canary for ten minutes.
 Then write down what happened.
`
