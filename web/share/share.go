// Package share serves the page to which phones and other programs share a text or a link. The
// shared texts and links are saved in the directory inbox of a space.
package share

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"satchel/internal/exports"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

//go:embed templates
var templates embed.FS

type pages struct{ *web.Site }

// Register adds the pages to a site. The manifest of the site names GET /share.
func Register(site *web.Site) error {
	s := &pages{site}
	s.Handle("GET /share", web.LimitPage, web.SignedIn, s.show)
	s.HandleLarge("POST /share", maxForm, func(*web.Visit) error { return nil }, s.save)
	s.Handle("GET /share/saved", web.LimitPage, web.SignedIn, s.showSaved)
	return s.AddTemplates(templates)
}

// Limits of what is shared, in characters.
const (
	maxTitle = 200
	maxText  = 20_000
	maxLink  = 2_000
)

// maxForm limits the form, in bytes. A character has at most four bytes, and a form encodes each
// byte in up to three bytes.
const maxForm = 12*(maxTitle+maxText+maxLink) + web.MaxFormBytes

// maxAlike limits how many files of one day may have the same name.
const maxAlike = 50

// sharePage shows a shared text or link before it is saved.
type sharePage struct {
	Title, Text, Link string
	Spaces            []service.View // the spaces that the visitor can change
	Chosen            space.SpaceID
}

// savedPage says where a shared text went.
type savedPage struct {
	Space service.View
	Path  space.Path
	URL   string
}

// show handles GET /share. It changes nothing.
func (s *pages) show(v *web.Visit) error { return s.form(v, v.R.URL.Query(), http.StatusOK, "", "") }

func (s *pages) form(v *web.Visit, from url.Values, status int, problem, field string) error {
	body := sharePage{Title: said(from, "title", maxTitle), Text: said(from, "text", maxText), Link: said(from, "url", maxLink), Chosen: space.SpaceID(from.Get("space"))}
	// Android puts the address of a page into the text.
	if body.Link == "" && isLink(body.Text) {
		body.Link, body.Text = body.Text, ""
	}
	all, err := s.Spaces(v)
	if err != nil {
		return err
	}
	body.Spaces = slices.DeleteFunc(slices.Clone(all), func(m service.View) bool { return !m.CanWrite() })
	if len(body.Spaces) == 0 {
		return fault.New(fault.Forbidden, "You have no space that you can change, so nothing can be saved. Ask the owner of a space to let you change it.")
	}
	return s.Page(v, status, "share", web.Page{Title: "Save to the inbox", Current: "share", Body: body, Problem: problem, Field: field})
}

// said returns a value of a form or a query as text of at most most characters.
func said(from url.Values, name string, most int) string {
	text := strings.ToValidUTF8(strings.ReplaceAll(from.Get(name), "\x00", ""), "")
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	if r := []rune(text); len(r) > most {
		text = string(r[:most])
	}
	return text
}

// isLink reports whether a text is the address of a web page and nothing else.
func isLink(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && !strings.ContainsAny(text, " \n\t")
}

// save handles POST /share.
func (s *pages) save(v *web.Visit) error {
	form := v.R.PostForm
	title, text, link := strings.Join(strings.Fields(said(form, "title", maxTitle)), " "), said(form, "text", maxText), said(form, "url", maxLink)
	if text == "" && link == "" {
		return s.form(v, form, http.StatusBadRequest, "There is nothing to save. Enter a text or a link.", "text")
	}
	if link != "" && !isLink(link) {
		return s.form(v, form, http.StatusBadRequest, "Enter a link that begins with https:// or http://, or leave it empty.", "link")
	}
	all, err := s.Spaces(v)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(m service.View) bool { return string(m.ID) == form.Get("space") && m.CanWrite() })
	if i < 0 {
		return s.form(v, form, http.StatusBadRequest, "Choose one of your spaces.", "space")
	}
	m := all[i]
	title = titleOf(title, text, link)
	for try := 1; ; try++ {
		p, err := s.free(v, m, title)
		switch {
		case web.IsRefusal(err):
			return s.form(v, form, web.AsPage(err).Status, fault.PublicOf(err), "title")
		case err != nil:
			return err
		}
		change := space.Change{Path: string(p), Op: space.Write, Content: []byte(document(title, text, link))}
		remark, err := s.WriteFiles(v, m.ID, space.ToolWeb, []space.Change{change}, "Save “"+web.Shorten(title, 60)+"” to the inbox")
		switch {
		case fault.CodeOf(err) == fault.Conflict && try < maxTries: // another note has taken the path meanwhile
		case web.IsRefusal(err):
			return s.form(v, form, web.AsPage(err).Status, fault.PublicOf(err), "text")
		case err != nil:
			return err
		default:
			return s.Saved(v, m, remark, "/share/saved?"+web.URLQuery("space", string(m.ID), "path", string(p)))
		}
	}
}

// maxTries limits how often save looks for a free path for a note.
const maxTries = 10

// titleOf returns the title of a note: the given one, or the first line of the text, or the host of
// the link.
func titleOf(title, text, link string) string {
	if title != "" {
		return title
	}
	first, _, _ := strings.Cut(text, "\n")
	if first = strings.TrimSpace(first); first != "" {
		return web.Shorten(first, 80)
	}
	if u, err := url.Parse(link); err == nil && u.Host != "" {
		return u.Host
	}
	return "Note"
}

// free returns a path in the inbox at which there is nothing.
func (s *pages) free(v *web.Visit, m service.View, title string) (space.Path, error) {
	base := "inbox/" + s.Now().UTC().Format("2006-01-02") + "-" + fileName(title)
	for n := 1; n <= maxAlike; n++ {
		p := space.Path(base + ".md")
		if n > 1 {
			p = space.Path(fmt.Sprintf("%s-%d.md", base, n))
		}
		taken, err := web.PathTaken(v, m, p)
		if err != nil {
			return "", err
		}
		if taken == "" {
			return p, nil
		}
	}
	return "", fault.New(fault.Conflict, "The inbox has too many notes with this title from today. Change the title, and save again.")
}

// maxName limits the name of a file, in characters.
const maxName = 60

// fileName returns a file name for a title, without an extension.
func fileName(title string) string {
	name := exports.Slug(title)
	if r := []rune(name); len(r) > maxName {
		name = strings.Trim(string(r[:maxName]), "-")
	}
	return cmp.Or(name, "note")
}

// document returns the note: front matter with the title and the source, and the text.
func document(title, text, link string) string {
	var b strings.Builder
	b.WriteString("---\ntitle: " + quoted(title) + "\n")
	if link != "" {
		b.WriteString("source: " + quoted(link) + "\n")
	}
	b.WriteString("---\n\n")
	if text != "" {
		b.WriteString(text + "\n")
	}
	if link != "" {
		if text != "" {
			b.WriteString("\n")
		}
		b.WriteString("<" + link + ">\n")
	}
	return b.String()
}

// quoted returns a text as a double-quoted YAML scalar. Every JSON string is such a scalar.
func quoted(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string cannot fail
	return strings.TrimSpace(b.String())
}

// showSaved handles GET /share/saved. It names only a file that exists.
func (s *pages) showSaved(v *web.Visit) error {
	q := v.R.URL.Query()
	all, err := s.Spaces(v)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(m service.View) bool { return string(m.ID) == q.Get("space") })
	p, perr := space.ParsePath(q.Get("path"))
	if i < 0 || perr != nil {
		return web.ErrNoPage
	}
	m := all[i]
	at, err := m.Head(v.R.Context())
	if err != nil {
		return err
	}
	if _, ok, err := m.Find(v.R.Context(), at, p); err != nil || !ok {
		if err == nil {
			err = web.ErrNoPage
		}
		return err
	}
	return s.Page(v, http.StatusOK, "shared-saved", web.Page{Title: "Saved", Space: &m, Current: "files", Body: savedPage{Space: m, Path: p, URL: web.SpaceURL(m.ID, "files", p)}})
}
