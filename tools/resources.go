package tools

import (
	"cmp"
	"context"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// The schemes of URIs that clients can list and read.
const (
	resourceScheme = "satchel://"
	skillScheme    = "skill://"
	markdownType   = "text/markdown"
)

func uriOf(scheme, p string) string {
	segs := strings.Split(p, "/")
	for i, s := range segs {
		segs[i] = url.PathEscape(s)
	}
	return scheme + strings.Join(segs, "/")
}

// Resources lists resources/*.md as satchel://resources/… and the skills that
// clients can use as skill://…/SKILL.md. The error is fault.Forbidden without
// the scope to read.
func (s *Registry) Resources(ctx context.Context, c Caller) ([]Resource, error) {
	if err := need(c, space.ScopeRead, "Listing resources"); err != nil {
		return nil, err
	}
	v, err := s.view(ctx, c)
	if err != nil {
		return nil, err
	}
	docs, err := v.resources(ctx)
	if err != nil {
		return nil, err
	}
	list := []Resource{} // [] and not null
	for _, d := range docs {
		list = append(list, Resource{
			URI: uriOf(resourceScheme, string(d.entry.Path)), Name: d.name, Title: d.title,
			Description: d.description, MIME: markdownType, Size: d.size,
		})
	}
	skills, err := v.skills(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range skills {
		if k.wrong == "" {
			list = append(list, Resource{
				URI: uriOf(skillScheme, k.dir+"/"+skillFile), Name: k.name, Title: k.title,
				Description: k.description, MIME: markdownType, Size: k.size,
			})
		}
	}
	return list, nil
}

// ReadResource returns a listed resource, or any file of a listed skill, and
// its media type. The errors are fault.NotFound, fault.TooLarge and
// fault.Forbidden.
func (s *Registry) ReadResource(ctx context.Context, c Caller, uri string) ([]Content, string, error) {
	if err := need(c, space.ScopeRead, "Reading a resource"); err != nil {
		return nil, "", err
	}
	v, err := s.view(ctx, c)
	if err != nil {
		return nil, "", err
	}
	e, err := v.byURI(ctx, uri)
	if err != nil {
		return nil, "", err
	}
	if e.Size > s.o.Limits.FileBytes {
		return nil, "", fault.New(fault.TooLarge, "The resource has %s, and %s are allowed.", bytesText(e.Size), bytesText(s.o.Limits.FileBytes))
	}
	b, err := v.content(ctx, e)
	if err != nil {
		return nil, "", err
	}
	typ := typeOf(string(e.Path), b)
	if isBinary(b) || imageType(b) != "" || !utf8.Valid(b) {
		// Clients get these bytes unchanged, so that a skill's digests match.
		return []Content{{Image: b, MIME: typ}}, typ, nil
	}
	return []Content{{Text: string(b), MIME: typ}}, typ, nil
}

func typeOf(p string, b []byte) string {
	if ext := path.Ext(p); ext == ".md" {
		return markdownType
	} else if !isBinary(b) {
		// HTML and scripts must be plain text, so that no client executes them. Do not use
		// the system's table or guess the type.
		if ext == ".json" {
			return "application/json"
		}
		return "text/plain"
	}
	t, _, err := mime.ParseMediaType(http.DetectContentType(b))
	if err != nil {
		return "application/octet-stream"
	}
	return t
}

// byURI finds the file of a URI that clients can read.
func (v view) byURI(ctx context.Context, uri string) (space.Entry, error) {
	none := fault.New(fault.NotFound, "There is no resource %q.", clip(uri, 200))
	scheme, rest := skillScheme, ""
	if p, ok := strings.CutPrefix(uri, skillScheme); ok {
		rest = p
	} else if p, ok := strings.CutPrefix(uri, resourceScheme); ok {
		scheme, rest = resourceScheme, p
	} else {
		return space.Entry{}, none
	}
	rest, err := url.PathUnescape(rest)
	if err != nil {
		return space.Entry{}, none
	}
	if scheme == skillScheme {
		rest = skillsDir + "/" + rest
	}
	p, err := space.ParsePath(rest)
	if err != nil {
		return space.Entry{}, none
	}
	if scheme == resourceScheme {
		if path.Dir(rest) != resourcesDir || path.Ext(rest) != ".md" {
			return space.Entry{}, none
		}
		e, err := v.lookup(ctx, p)
		if err == nil && !plain(e) || fault.CodeOf(err) == fault.NotFound {
			return space.Entry{}, none
		}
		return e, err
	}
	skills, err := v.skills(ctx)
	if err != nil {
		return space.Entry{}, err
	}
	for _, k := range skills {
		if k.wrong != "" || !strings.HasPrefix(rest, skillsDir+"/"+k.dir+"/") {
			continue
		}
		for _, f := range k.files {
			if f.Path == p {
				return v.lookup(ctx, p)
			}
		}
	}
	return space.Entry{}, none
}

// Skills lists the entries of the skills extension (SEP-2640). An entry is a skill with
// readable front matter, a description and the name of its directory, of at most
// Limits.SkillFiles files and Limits.SkillBytes. GetSkill reports the problems of other
// skills. The index of instructions reports them too, except for their size.
func (s *Registry) Skills(ctx context.Context, c Caller) ([]Skill, error) {
	if err := need(c, space.ScopeRead, "Listing skills"); err != nil {
		return nil, err
	}
	v, err := s.view(ctx, c)
	if err != nil {
		return nil, err
	}
	skills, err := v.skills(ctx)
	if err != nil {
		return nil, err
	}
	list := []Skill{}
	for _, k := range skills {
		entry, ok, err := v.skillEntry(ctx, k)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, entry)
		}
	}
	return list, nil
}

// GetSkill returns the entry with a URI (skill://<path>/SKILL.md). The error is a
// fault.NotFound or a fault.Forbidden.
func (s *Registry) GetSkill(ctx context.Context, c Caller, uri string) (Skill, error) {
	if err := need(c, space.ScopeRead, "Getting a skill"); err != nil {
		return Skill{}, err
	}
	v, err := s.view(ctx, c)
	if err != nil {
		return Skill{}, err
	}
	skills, err := v.skills(ctx)
	if err != nil {
		return Skill{}, err
	}
	why := ""
	for _, k := range skills {
		if uriOf(skillScheme, k.dir+"/"+skillFile) != uri {
			continue
		}
		entry, ok, err := v.skillEntry(ctx, k)
		if ok || err != nil {
			return entry, err
		}
		why = " It cannot be offered: " + sentence(cmp.Or(k.wrong, "it is over the size limit of a skill"))
	}
	return Skill{}, fault.New(fault.NotFound, "There is no skill %q.%s", clip(uri, 200), why)
}

// skillEntry lists every file of a skill with its digest; ok is false if the skill cannot
// be offered.
func (v view) skillEntry(ctx context.Context, k skill) (entry Skill, ok bool, err error) {
	if k.wrong != "" {
		return Skill{}, false, nil
	}
	entry = Skill{URI: uriOf(skillScheme, k.dir+"/"+skillFile), Frontmatter: k.fields}
	total := int64(0)
	for _, f := range k.files {
		if f.Size > v.s.o.Limits.SkillBytes {
			return Skill{}, false, nil
		}
		h, err := v.head(ctx, f)
		if err != nil {
			return Skill{}, false, err
		}
		if total += h.size; total > v.s.o.Limits.SkillBytes || h.digest == "" {
			return Skill{}, false, nil
		}
		p := strings.TrimPrefix(string(f.Path), skillsDir+"/")
		entry.Resources = append(entry.Resources, SkillResource{URI: uriOf(skillScheme, p), Digest: h.digest, Size: h.size})
	}
	return entry, true, nil
}
