package syncs

import (
	"encoding/json"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	"satchel/gitstore/sources/upstream"
	"satchel/internal/space"
)

// look collects the licence and the titles from the contents of a preview.
type look struct{ licence string }

// at adds the title of a Markdown file to f. If f is the licence file of the source, at notes the
// licence.
func (l *look) at(f *upstream.File, content []byte) {
	if l.licence == "" && !strings.Contains(string(f.Path), "/") && IsLicence(string(f.Path)) {
		l.licence = LicenceOf(string(f.Path), content)
	}
	if f.Title == "" {
		f.Title = titleOf(string(f.Path), content)
	}
}

// titleOf returns the title of a file, if it is Markdown.
func titleOf(name string, content []byte) string {
	switch path.Ext(name) {
	case ".md", ".mdx", ".markdown":
	default:
		return ""
	}
	return upstream.TitleOf(content)
}

// IsLicence reports whether a file at the root of a source states the licence of all files.
func IsLicence(name string) bool {
	base, _, _ := strings.Cut(strings.ToLower(name), ".")
	return base == "license" || base == "licence" || base == "copying" || base == "unlicense"
}

// licenceBytes is how much of a licence file is read. The long licences name themselves at the top.
const licenceBytes = 4 << 10

// LicenceOf returns the SPDX name of the licence in a file, or the name of the file if the
// licence is not known.
func LicenceOf(name string, content []byte) string {
	text := strings.ToLower(strings.Join(strings.Fields(string(content[:min(len(content), licenceBytes)])), " "))
	has := func(parts ...string) bool {
		for _, p := range parts {
			if !strings.Contains(text, p) {
				return false
			}
		}
		return true
	}
	switch {
	case has("apache license", "version 2.0"):
		return "Apache-2.0"
	case has("permission is hereby granted, free of charge", "the above copyright notice and this permission notice"):
		return "MIT"
	case has("permission to use, copy, modify, and/or distribute this software"):
		return "ISC"
	case has("mozilla public license", "2.0"):
		return "MPL-2.0"
	case has("gnu affero general public license", "version 3"):
		return "AGPL-3.0"
	case has("gnu lesser general public license", "version 3"):
		return "LGPL-3.0"
	case has("gnu general public license", "version 3"):
		return "GPL-3.0"
	case has("gnu general public license", "version 2"):
		return "GPL-2.0"
	case has("attribution-sharealike 4.0 international"):
		return "CC-BY-SA-4.0"
	case has("attribution 4.0 international"):
		return "CC-BY-4.0"
	case has("cc0 1.0 universal"):
		return "CC0-1.0"
	case has("this is free and unencumbered software released into the public domain"):
		return "Unlicense"
	case has("redistribution and use in source and binary forms", "neither the name"):
		return "BSD-3-Clause"
	case has("redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	}
	return name
}

// withoutPassword returns an address without the name and password in it.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return u.String()
}

// plain reports whether a part of an address is too common to distinguish sources.
func plain(part string) bool {
	switch strings.ToLower(part) {
	case "", "www", "docs", "doc", "documentation", "guide", "guides", "en", "latest", "main", "master", "stable", "help", "developer", "developers", "wiki", "llms.txt", "llms-full.txt", "index.html", "sitemap.xml":
		return true
	}
	return false
}

// suggestTitle returns a title for a source from its settings: the name of the repository, or
// the words in the address of a site that are not too common.
func suggestTitle(settings json.RawMessage) string {
	u, err := url.Parse(addressOf(syncRow{Settings: string(settings)}))
	if err != nil {
		return ""
	}
	host := strings.TrimPrefix(u.Hostname(), "www.")
	segments := strings.Split(strings.Trim(u.Path, "/"), "/")
	name := strings.TrimSuffix(segments[len(segments)-1], ".git")
	if strings.HasSuffix(u.Path, ".git") || host == "github.com" || host == "" {
		return capital(name)
	}
	var words []string
	labels := strings.Split(host, ".")
	if net.ParseIP(host) != nil || len(labels) == 1 {
		words = append(words, host)
	} else {
		for _, l := range labels[:len(labels)-1] {
			if !plain(l) {
				words = append(words, l)
			}
		}
	}
	for _, s := range segments {
		if s = strings.TrimSuffix(s, path.Ext(s)); !plain(s) {
			words = append(words, s)
		}
	}
	return capital(strings.Join(words, " "))
}

func capital(text string) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '/' {
			return ' '
		}
		return r
	}, text)), " ")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// maxChanges limits the listed changes of a dry run.
const maxChanges = 500

// changesOf lists the first changes that a stage makes to a manifest, sorted by path.
func changesOf(old, files []stagedFile, limit int) []space.SyncChange {
	was, gone := map[space.Path]space.BlobID{}, map[space.BlobID][]space.Path{}
	for _, f := range old {
		was[f.Path] = f.Blob
	}
	is := map[space.Path]bool{}
	for _, f := range files {
		is[f.Path] = true
	}
	for _, f := range old {
		if !is[f.Path] {
			gone[f.Blob] = append(gone[f.Blob], f.Path)
		}
	}
	var out []space.SyncChange
	renamed := map[space.Path]bool{}
	for _, f := range files {
		blob, ok := was[f.Path]
		switch from := gone[f.Blob]; {
		case ok && blob != f.Blob:
			out = append(out, space.SyncChange{Path: f.Path, Status: space.Modified})
		case !ok && len(from) > 0:
			gone[f.Blob], renamed[from[0]] = from[1:], true
			out = append(out, space.SyncChange{Path: f.Path, Status: space.Added, From: from[0]})
		case !ok:
			out = append(out, space.SyncChange{Path: f.Path, Status: space.Added})
		}
	}
	for _, f := range old {
		if !is[f.Path] && !renamed[f.Path] {
			out = append(out, space.SyncChange{Path: f.Path, Status: space.Deleted})
		}
	}
	slices.SortFunc(out, func(a, b space.SyncChange) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return out[:min(len(out), limit)]
}
