package index

import (
	"fmt"
	"strings"
	"testing"
)

func TestSearchForgivesSlips(t *testing.T) {
	x, _ := indexOf(t, map[string]string{
		"config.md":  "# Configuration\n\nThe configuration of the server is read when it starts.",
		"deploy.md":  "# Deployment\n\nA deployment starts the server anew.",
		"version.md": "# Release 1.0.21\n\nPort 8080 is open.",
		"ja.md":      "# 表示\n\n表示を変える。図表",
		"fetch.md":   "# useTideFetch\n\nIt asks for the tide.",
		"use.md":     "# Use\n\nThe use of tides and of use.",
	})
	for _, c := range []struct{ query, path, note string }{
		{"confguration", "config.md", `No page has "confguration"; searched for "configuration" too.`},
		{"server deploymnet", "deploy.md", `No page has "deploymnet"; searched for "deployment" too.`},
		{"configuration", "config.md", ""},
		{"useTideFecth", "fetch.md", `No page has "useTideFecth"; searched for "usetidefetch" too.`},
		{"useTdeFetch", "fetch.md", `No page has "useTdeFetch"; searched for "usetidefetch" too.`},
		{"useXyzzy", "use.md", `No page has "useXyzzy".`},
		{"useTides", "use.md", ""}, // its parts are words of pages
		{"1.0.22 release", "version.md", "-"},
		{"8081", "", "-"},
		{"表", "ja.md", ""}, // one character, in pairs and at the end of a run
		{"示", "ja.md", ""},
	} {
		r := search(t, x, c.query)
		if c.path == "" && len(r.Hits) > 0 || c.path != "" && (len(r.Hits) == 0 || r.Hits[0].Path != c.path) {
			t.Errorf("%s finds %v, want %s", c.query, paths(r), c.path)
		}
		notes := strings.Join(r.Notes, " ")
		if c.note == "" && notes != "" || c.note == "-" && strings.Contains(notes, "searched for") || len(c.note) > 1 && notes != c.note {
			t.Errorf("%s: notes %q, want %q", c.query, notes, c.note)
		}
	}
}

// The replacement is on a page exactly as the answer names it: not a stem with a wrong
// ending, not a much rarer word of another language, and without an umlaut that no page
// has.
func TestRespellingsAreWordsOfPages(t *testing.T) {
	pages := map[string]string{
		"fr.md":  "# Rendu\n\nLe contenu est prérendu pour la production et les pages sont dans la documentation.",
		"it.md":  "# Regole\n\nIl server viene configurato con le regole che sono nella documentazione del progetto.",
		"de.md":  "# Bereitstellung\n\nDie Anwendung wird mit Cloudflare bereitgestellt, und die Größe der Seiten wird nicht über die Datei geändert.",
		"net.md": "# Hosting\n\nHosting on Cloudflare is described here.",
	}
	for i := range 6 { // only the last of them has the word that is meant
		pages[fmt.Sprintf("render%d.md", i)] = "# Pages\n\nA page can be set to prerender when it is built."
	}
	pages["code.md"] = "# Code\n\nCall `useComposableThing` first."
	pages["render9.md"] = "# Routes\n\nThe prerendering of routes happens when the site is built."
	for i := range 30 {
		pages[fmt.Sprintf("config%d.md", i)] = "# Server\n\nThe configuration of the server is read."
	}
	x, _ := indexOf(t, pages)
	for _, c := range []struct{ query, note string }{
		{"prerendring", `No page has "prerendring"; searched for "prerendering" too.`},
		{"configuraton", `No page has "configuraton"; searched for "configuration" too.`},
		{"cloudflaer", `No page has "cloudflaer"; searched for "cloudflare" too.`},
		{"cloudfalre", `No page has "cloudfalre"; searched for "cloudflare" too.`},
		{"componnable", `No page has "componnable"; searched for "composable" too.`}, // inside an identifier
		{"groesse", ""}, // a page has the form with an umlaut
		{"geaendert", ""},
	} {
		r := search(t, x, c.query)
		if notes := strings.Join(r.Notes, " "); notes != c.note || len(r.Hits) == 0 {
			t.Errorf("%s: %d hits, notes %q, want %q", c.query, len(r.Hits), notes, c.note)
		}
	}
}
