package tools

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"satchel/internal/space"
)

// unlistedFile is a file that a call has written at the place of a skill or a resource, and
// that clients do not list because it is invalid.
type unlistedFile struct {
	path space.Path
	why  string
}

// unlisted returns the skills and resources among written files that are invalid, sorted by
// path. An invalid skill is among them if any of its files was written.
func (v view) unlisted(ctx context.Context, written []space.Path) ([]unlistedFile, error) {
	under := func(dir string) []space.Path {
		return slices.DeleteFunc(slices.Clone(written), func(p space.Path) bool { return !strings.HasPrefix(string(p), dir+"/") })
	}
	var out []unlistedFile
	if touched := under(resourcesDir); len(touched) > 0 {
		docs, err := v.resources(ctx)
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			if d.problem != "" && slices.Contains(touched, d.entry.Path) {
				out = append(out, unlistedFile{d.entry.Path, sentence(d.problem)})
			}
		}
	}
	touched := under(skillsDir)
	if len(touched) == 0 {
		return out, nil
	}
	skills, err := v.skills(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range skills {
		if k.wrong != "" && slices.ContainsFunc(touched, func(p space.Path) bool { return strings.HasPrefix(string(p), skillsDir+"/"+k.dir+"/") }) {
			out = append(out, unlistedFile{k.entry.Path, sentence(k.wrong)})
		}
	}
	for _, p := range touched {
		name := path.Base(string(p))
		if path.Dir(string(p)) != skillsDir || path.Ext(name) != ".md" || strings.EqualFold(name, "README.md") {
			continue
		}
		if _, err := v.lookup(ctx, p); err == nil { // the file still exists
			out = append(out, unlistedFile{p, "A skill is a directory, skills/<name>/SKILL.md."})
		}
	}
	slices.SortFunc(out, func(a, b unlistedFile) int { return strings.Compare(string(a.path), string(b.path)) })
	return out, nil
}

// addUnlisted adds the invalid skills and resources among written files to an answer. The
// files are saved, so an error here is only logged.
func (s *Registry) addUnlisted(ctx context.Context, c Caller, written []space.Path, r *Result) {
	if !slices.ContainsFunc(written, func(p space.Path) bool {
		return strings.HasPrefix(string(p), skillsDir+"/") || strings.HasPrefix(string(p), resourcesDir+"/")
	}) {
		return
	}
	v, err := s.view(context.WithoutCancel(ctx), c)
	var list []unlistedFile
	if err == nil {
		list, err = v.unlisted(context.WithoutCancel(ctx), written)
	}
	if err != nil {
		s.o.Logger.Error("check the skills and resources that were written", "err", err)
		return
	}
	if len(list) == 0 {
		return
	}
	var b strings.Builder
	b.WriteString("[NOT LISTED: these files are committed, but no AI sees them as a skill or resource until they are corrected:]\n")
	for i, u := range list {
		if i == maxListedProblems {
			fmt.Fprintf(&b, "  … %s more\n", thousands(int64(len(list)-i)))
			break
		}
		fmt.Fprintf(&b, "  %s: %s\n", quotePath(string(u.path)), oneLine(u.why, maxReasonChars))
	}
	last := &r.Content[len(r.Content)-1]
	last.Text = strings.TrimPrefix(last.Text+"\n"+strings.TrimSuffix(b.String(), "\n"), "\n")
	meta := []map[string]any{}
	for _, u := range list[:min(len(list), maxMetaFiles)] {
		meta = append(meta, map[string]any{"path": string(u.path), "why": u.why})
	}
	r.Meta["not_listed"] = meta
}
