package tools

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/frontmatter"
	"satchel/internal/space"
	"satchel/tools/index/parse"
)

// The directories and files of a space that have a meaning for clients.
const (
	resourcesDir     = "resources"
	skillsDir        = "skills"
	memoryDir        = "memory"
	knowledgeDir     = "knowledge"
	instructionsPath = "resources/instructions.md"
	contextPath      = "resources/context.md"
	skillFile        = "SKILL.md"
)

// document is a resource or a skill in a list.
type document struct {
	entry       space.Entry
	name        string
	title       string
	description string
	fields      map[string]any
	problem     string // why the document or its front matter cannot be read
	size        int64
}

// head returns the description of a document without its text. It uses the cache if the
// same content was seen before. A damaged document is not an error: it has a problem and no
// digest, so that a list still has the other documents.
func (v view) head(ctx context.Context, e space.Entry) (docHead, error) {
	if h, ok := v.s.cache.Get(e.Blob); ok {
		return h, nil
	}
	b, err := v.content(ctx, e)
	if fault.CodeOf(err) == fault.Damaged {
		return docHead{problem: fault.PublicOf(err), size: e.Size}, nil
	}
	if err != nil {
		return docHead{}, err
	}
	h := newDocHead(b)
	v.s.cache.Add(e.Blob, h)
	return h, nil
}

func newDocHead(b []byte) docHead {
	sum := sha256.Sum256(b)
	h := docHead{size: int64(len(b)), digest: "sha256:" + hex.EncodeToString(sum[:])}
	d, err := frontmatter.Parse(b)
	if err != nil {
		h.problem = err.Error()
	}
	if d.Fields == nil && err == nil {
		// Without front matter, the first heading is the name of the document. All listed
		// documents are Markdown.
		if all := parse.Sections(skillFile, b[:min(len(b), 4096)]); len(all) > 0 && all[0].Level == 1 {
			d.Fields = map[string]any{"title": all[0].Title}
		}
	}
	h.fields = frontmatter.Document{Fields: d.Fields}
	return h
}

func (v view) document(ctx context.Context, e space.Entry) (document, error) {
	h, err := v.head(ctx, e)
	if err != nil {
		return document{}, err
	}
	d := document{
		entry: e, fields: h.fields.Fields, problem: h.problem, size: h.size,
		name: oneLine(h.fields.String("name"), 128), title: oneLine(h.fields.String("title"), 200),
		description: oneLine(h.fields.String("description"), 1024),
	}
	return d, nil
}

// plain reports whether e is a file and not a link.
func plain(e space.Entry) bool { return !e.Dir && e.Mode != space.Symlink }

// resources lists resources/*.md, including instructionsPath and contextPath.
func (v view) resources(ctx context.Context) ([]document, error) {
	entries, err := v.files(ctx, resourcesDir)
	if err != nil {
		return nil, err
	}
	var docs []document
	for _, e := range entries {
		name := path.Base(string(e.Path))
		if !plain(e) || path.Dir(string(e.Path)) != resourcesDir || path.Ext(name) != ".md" || len(docs) == v.s.o.Limits.Documents {
			continue
		}
		d, err := v.document(ctx, e)
		if err != nil {
			return nil, err
		}
		d.name = cmp.Or(d.name, strings.TrimSuffix(name, ".md"))
		docs = append(docs, d)
	}
	return docs, nil
}

// skill is a directory that contains a SKILL.md.
type skill struct {
	document
	dir   string        // the path under skills/, such as "acme/refunds"
	files []space.Entry // all files under dir, SKILL.md first
	// wrong says why the skill cannot be offered to clients. It is empty for a valid skill.
	wrong string
}

// skills lists the directories under skills/ that contain a SKILL.md, sorted by path. There are at
// most Limits.Documents.
func (v view) skills(ctx context.Context) ([]skill, error) {
	entries, err := v.files(ctx, skillsDir)
	if err != nil {
		return nil, err
	}
	var list []skill
	for _, e := range entries {
		dir := path.Dir(string(e.Path))
		if !plain(e) || path.Base(string(e.Path)) != skillFile || dir == skillsDir || len(list) == v.s.o.Limits.Documents {
			continue
		}
		d, err := v.document(ctx, e)
		if err != nil {
			return nil, err
		}
		k := skill{document: d, dir: strings.TrimPrefix(dir, skillsDir+"/"), files: []space.Entry{e}}
		for _, f := range entries {
			if plain(f) && f.Path != e.Path && strings.HasPrefix(string(f.Path), dir+"/") {
				k.files = append(k.files, f)
			}
		}
		k.wrong = k.check(v.s.o.Limits)
		k.name = cmp.Or(k.name, path.Base(k.dir))
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b skill) int { return cmp.Compare(a.dir, b.dir) })
	return list, nil
}

// linkedSkills returns a line for each symbolic link in place of a skill, because links are not
// followed.
func (v view) linkedSkills(ctx context.Context) ([]string, error) {
	entries, err := v.files(ctx, skillsDir)
	if err != nil {
		return nil, err
	}
	if e, err := v.lookup(ctx, skillsDir); err == nil {
		entries = append(entries, e)
	} else if fault.CodeOf(err) != fault.NotFound {
		return nil, err
	}
	var lines []string
	for _, e := range entries {
		if e.Dir || e.Mode != space.Symlink || len(lines) == v.s.o.Limits.Documents {
			continue
		}
		if p := string(e.Path); p == skillsDir || path.Dir(p) == skillsDir || path.Base(p) == skillFile {
			lines = append(lines, "- "+notFollowed(p))
		}
	}
	return lines, nil
}

// check says which rule of the skills extension (SEP-2640) the skill breaks, or returns "".
func (k skill) check(l Limits) string {
	switch {
	case k.problem != "":
		return k.problem
	case k.name == "" || k.description == "":
		return "its front matter needs a name and a description"
	case k.name != path.Base(k.dir):
		return fmt.Sprintf("its front matter names it %q, and its directory %q: they must be the same", clip(k.name, 64), path.Base(k.dir))
	case len(k.files) > l.SkillFiles:
		return fmt.Sprintf("it has %d files, and %d are allowed", len(k.files), l.SkillFiles)
	}
	return ""
}
