package web

import (
	"embed"
	"fmt"
	"html/template"
	"strings"
)

// iconFiles are the icons that pages use: the inner elements of the files of lucide-static
// (ISC, see icons/LICENSE).
//
//go:embed icons/*.svg icons/LICENSE
var iconFiles embed.FS

// icon returns the named icon as an inline SVG, which screen readers skip.
func icon(name string) (template.HTML, error) {
	body, err := iconFiles.ReadFile("icons/" + name + ".svg")
	if err != nil {
		return "", fmt.Errorf("there is no icon %q", name)
	}
	return template.HTML(`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">` + strings.TrimSpace(string(body)) + `</svg>`), nil
}
