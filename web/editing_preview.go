package web

import (
	"satchel/internal/space"
	"satchel/web/render"
)

// preview makes what a text looks like, where it is Markdown. Another one, and
// one beyond the limits of a page, is shown as it is.
func (e *editing) preview(id space.SpaceID, p string, body *editPage) {
	body.Previewed = true
	if !IsMarkdown(p) {
		return
	}
	doc, ok := render.Markdown([]byte(body.Text), render.Place{
		Path: p, Files: SpaceURL(id, "files", ""), Raw: SpaceURL(id, "raw", ""), Under: 2, // the page's title and the preview's
	})
	if ok {
		body.Preview = &doc
	}
}
