package web

import "html/template"

// preview is what a text looks like, where it is Markdown; "" where it is shown
// as it is.
func (e *editing) preview(v *visit, body *editPage) template.HTML { return "" }

func (e *editing) previewStyles() []string { return nil }
