package tools

import (
	"cmp"
	"context"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// The URI schemes and the media type of what clients can list and read.
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
// clients can use as skill://…/SKILL.md. If c has no scope to read, the error is a
// fault.Forbidden.
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

// ResourceTemplates lists the templates of URIs that ReadResource accepts besides those of
// the listed resources.
func (s *Registry) ResourceTemplates() []ResourceTemplate {
	return []ResourceTemplate{{
		URI: resourceScheme + "{+path}", Name: "page", Title: "A page of the space", MIME: markdownType,
		Description: "Any file of the user's space by its path, such as knowledge/x.md, or of a shared source, such as /library/docs/nuxt/index.md.",
	}}
}

// ReadResource returns the file of a URI, and its media type. satchel://<path> is a file of the
// space or of a source, and skill://<path> is a file of a listed skill. If the file is of a source
// or an import and looks like commands to an AI, a second Content is a warning. ReadResource
// follows no links. The errors include fault.NotFound, fault.TooLarge and fault.Forbidden.
func (s *Registry) ReadResource(ctx context.Context, c Caller, uri string) ([]Content, string, error) {
	if err := need(c, space.ScopeRead, "Reading a resource"); err != nil {
		return nil, "", err
	}
	v, err := s.view(ctx, c)
	if err != nil {
		return nil, "", err
	}
	in, e, err := v.byURI(ctx, uri)
	if err != nil {
		return nil, "", err
	}
	if e.Size > s.o.Limits.FileBytes {
		return nil, "", fault.New(fault.TooLarge, "The resource has %s, and %s are allowed.", bytesText(e.Size), bytesText(s.o.Limits.FileBytes))
	}
	release, err := v.hold(ctx, e.Size)
	if err != nil {
		return nil, "", err
	}
	defer release()
	b, err := in.content(ctx, e)
	if err != nil {
		return nil, "", err
	}
	typ := typeOf(string(e.Path), b)
	if isBinary(b) || imageType(b) != "" || !utf8.Valid(b) {
		// Clients get these bytes unchanged, so that a skill's digests match.
		return []Content{{Image: b, MIME: typ}}, typ, nil
	}
	contents := []Content{{Text: string(b), MIME: typ}}
	// The warning is a content of its own, so that the bytes of the file match its digest.
	if from := in.mount() + string(e.Path); suspicious(from, string(b)) {
		contents = append(contents, Content{Text: commandsWarning, MIME: "text/plain"})
	}
	return contents, typ, nil
}

// ResourcePath returns the path of the file that ReadResource reads for a URI, so that a client
// can subscribe to the file. The errors are fault.NotFound, fault.Forbidden and, for a
// file of a source, fault.Invalid.
func (s *Registry) ResourcePath(ctx context.Context, c Caller, uri string) (space.Path, error) {
	if err := need(c, space.ScopeRead, "Subscribing to a resource"); err != nil {
		return "", err
	}
	v, err := s.view(ctx, c)
	if err != nil {
		return "", err
	}
	in, e, err := v.byURI(ctx, uri)
	if err != nil {
		return "", err
	}
	if in.source != nil {
		return "", fault.New(fault.Invalid, "You can subscribe only to files of the space. Read a file of the library again to see whether it changed.")
	}
	return e.Path, nil
}

// InLists reports whether the lists of resources and of prompts depend on a file.
func InLists(p space.Path) (resources, prompts bool) {
	skill := strings.HasPrefix(string(p), skillsDir+"/")
	return skill || path.Dir(string(p)) == resourcesDir, skill
}

func typeOf(p string, b []byte) string {
	if ext := path.Ext(p); ext == ".md" {
		return markdownType
	} else if !isBinary(b) {
		// HTML and scripts must be plain text, so that no client executes them. Do not use
		// the system's table of media types, and do not guess the type.
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

// maxURI limits the bytes of a resource's URI, because servers keep the URIs to which clients
// subscribe. Without the limit, a URI could have any number of "./". Escaping turns each byte of a
// path into at most three.
const maxURI = 3*space.MaxPathBytes + 64

// byURI finds the file of a URI that clients can read, and the view that contains the file.
func (v view) byURI(ctx context.Context, uri string) (view, space.Entry, error) {
	none := fault.New(fault.NotFound, "There is no resource %q.", clip(uri, 200))
	if len(uri) > maxURI {
		return v, space.Entry{}, none
	}
	p, page := strings.CutPrefix(uri, resourceScheme)
	file, ofSkill := strings.CutPrefix(uri, skillScheme)
	if ofSkill {
		p = skillsDir + "/" + file
	}
	p, err := url.PathUnescape(p)
	if err != nil || !page && !ofSkill {
		return v, space.Entry{}, none
	}
	r, err := parseRef(p)
	if err != nil || r.dir || ofSkill && r.library {
		return v, space.Entry{}, none
	}
	if ofSkill {
		listed, err := v.inListedSkill(ctx, space.Path(r.path))
		if err != nil {
			return v, space.Entry{}, err
		}
		if !listed {
			return v, space.Entry{}, none
		}
	}
	in, e, err := v.find(ctx, r)
	// find follows links. If it followed one, e has another path. A link may also be invalid.
	if c := fault.CodeOf(err); c == fault.NotFound || c == fault.Invalid || err == nil && (e.Dir || string(e.Path) != r.inside()) {
		return v, space.Entry{}, none
	}
	return in, e, err
}

// inListedSkill reports whether a path is a file of a skill that clients can use.
func (v view) inListedSkill(ctx context.Context, p space.Path) (bool, error) {
	skills, err := v.skills(ctx)
	if err != nil {
		return false, err
	}
	for _, k := range skills {
		if k.wrong == "" && slices.ContainsFunc(k.files, func(f space.Entry) bool { return f.Path == p }) {
			return true, nil
		}
	}
	return false, nil
}

// Skills lists the entries of the skills extension (SEP-2640). They are the skills that have
// readable front matter, a description and the same name as their directory, and that are
// within Limits.SkillFiles and Limits.SkillBytes. GetSkill says why another skill is no entry.
// The index of the instructions tool also says why, unless the skill is over SkillBytes.
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
