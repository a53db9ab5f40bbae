package service

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"satchel/gitstore/sources"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// ListSourcesInput selects sources.
type ListSourcesInput struct {
	// User names the person whose readable sources are listed. Only the operator can set User.
	// Without User, the operator gets every source.
	User string `json:"user,omitempty"`
}

// ListSources lists the sources that the actor may read, sorted by ID.
func (s *Service) ListSources(ctx context.Context, a Actor, in ListSourcesInput) ([]space.Source, error) {
	if err := s.authorize(a, "ListSources"); err != nil {
		return nil, err
	}
	reader := a.user
	if a.kind == operator {
		if in.User == "" {
			return s.named(ctx, s.sources.All())
		}
		u, err := s.accounts.FindUser(ctx, in.User)
		if err != nil {
			return nil, err
		}
		reader = u.ID
	}
	all, err := s.sources.Visible(ctx, reader)
	if err != nil {
		return nil, err
	}
	return s.named(ctx, all)
}

// named adds the names of publishers and readers to sources, except the names of removed people. It
// also adds the state of the syncs.
func (s *Service) named(ctx context.Context, all []space.Source) ([]space.Source, error) {
	if len(all) == 0 {
		return []space.Source{}, nil
	}
	var people []space.UserID
	for _, src := range all {
		people = append(append(people, src.By), src.Users...)
	}
	slices.Sort(people)
	names, err := s.accounts.UserNames(ctx, slices.Compact(people)...)
	if err != nil {
		return nil, err
	}
	for i := range all {
		src := &all[i]
		src.Readers = nil
		if src.Upstream() && s.syncs != nil {
			s.syncs.Overlay(src)
		}
		if n := names[src.By]; !n.Removed {
			src.Owner = n.Name
		}
		for _, u := range src.Users {
			if n := names[u]; !n.Removed {
				src.Readers = append(src.Readers, n.Name)
			}
		}
	}
	return all, nil
}

func (s *Service) namedOne(ctx context.Context, src space.Source) (space.Source, error) {
	all, err := s.named(ctx, []space.Source{src})
	if err != nil {
		return space.Source{}, err
	}
	return all[0], nil
}

// Snapshot reads the files of a source at one commit.
type Snapshot struct {
	Source  space.Source
	manager *sources.Manager
}

// OpenSource opens the current snapshot of a source. It returns a fault.NotFound if the
// actor may not read the source.
func (s *Service) OpenSource(ctx context.Context, a Actor, id string) (Snapshot, error) {
	if err := s.authorize(a, "OpenSource"); err != nil {
		return Snapshot{}, err
	}
	src, err := s.readable(ctx, a, id)
	return Snapshot{src, s.sources}, err
}

func (s *Service) readable(ctx context.Context, a Actor, id string) (space.Source, error) {
	all, err := s.ListSources(ctx, a, ListSourcesInput{})
	if err != nil {
		return space.Source{}, err
	}
	if i := slices.IndexFunc(all, func(x space.Source) bool { return x.ID == id }); i >= 0 {
		return all[i], nil
	}
	return space.Source{}, sources.NotThere(id)
}

// Lookup returns the file or directory at a path. The empty path is the root.
func (n Snapshot) Lookup(ctx context.Context, p space.Path) (space.Entry, error) {
	return n.manager.Lookup(ctx, n.Source.Collection, n.Source.Commit, p)
}

// Children lists a directory, sorted by path.
func (n Snapshot) Children(ctx context.Context, dir space.Path) ([]space.Entry, error) {
	return n.manager.Children(ctx, n.Source.Collection, n.Source.Commit, dir)
}

// ReadBlob returns the content of a file. Callers must not modify it.
func (n Snapshot) ReadBlob(ctx context.Context, b space.BlobID) ([]byte, error) {
	return n.manager.ReadBlob(ctx, n.Source.Collection, b)
}

// ListPublishedInput names a space.
type ListPublishedInput struct {
	Space SpaceRef `json:"space"`
}

// ListPublished lists the sources published from a space.
func (s *Service) ListPublished(ctx context.Context, a Actor, in ListPublishedInput) ([]space.Source, error) {
	m, err := s.authorizeSpace(ctx, a, "ListPublished", in.Space)
	if err != nil {
		return nil, err
	}
	return s.named(ctx, s.sources.Of(m.ID))
}

// PreviewSourceInput names a directory of a space; an empty Dir is the whole space.
type PreviewSourceInput struct {
	Space SpaceRef `json:"space"`
	Dir   string   `json:"dir"`
	Limit int      `json:"limit"` // maximum number of listed files
}

// SourcePreview is what readers of a source would see, with warnings for its owner.
type SourcePreview struct {
	sources.Preview
	// Secrets are the files with likely secrets among the first Scanned files.
	Secrets []space.Path `json:"secrets"`
	Scanned int          `json:"scanned"`
}

// Limits of the search for secrets in a preview.
const (
	previewScanFiles = 300
	previewScanBytes = 4 << 20
)

// PreviewSource returns what readers would see if the directory were published.
func (s *Service) PreviewSource(ctx context.Context, a Actor, in PreviewSourceInput) (SourcePreview, error) {
	m, err := s.authorizeSpace(ctx, a, "PreviewSource", in.Space)
	if err != nil {
		return SourcePreview{}, err
	}
	p, err := s.sources.Preview(ctx, m.ID, in.Dir, max(in.Limit, previewScanFiles))
	if err != nil {
		return SourcePreview{}, err
	}
	out := SourcePreview{Preview: p}
	out.Files = p.Files[:min(max(in.Limit, 0), len(p.Files))]
	left := int64(previewScanBytes)
	for _, f := range p.Files {
		if left -= f.Size; left < 0 || out.Scanned == previewScanFiles {
			break
		}
		b, err := s.sources.Peek(ctx, m.ID, f)
		if err != nil {
			return SourcePreview{}, err
		}
		out.Scanned++
		if len(s.secrets.Scan(f.Path, b)) > 0 {
			out.Secrets = append(out.Secrets, f.Path)
		}
	}
	return out, nil
}

// SuggestSourceIDInput names a directory of a space.
type SuggestSourceIDInput struct {
	Space SpaceRef `json:"space"`
	Dir   string   `json:"dir"`
}

// SuggestSourceID returns a free ID for a source. The ID contains the names of the owner and
// the directory.
func (s *Service) SuggestSourceID(ctx context.Context, a Actor, in SuggestSourceIDInput) (string, error) {
	m, err := s.authorizeSpace(ctx, a, "SuggestSourceID", in.Space)
	if err != nil {
		return "", err
	}
	dir := strings.Trim(in.Dir, "/")
	short := sourceID(m.OwnerName, path.Base("/"+dir))
	for _, id := range []string{short, sourceID(m.OwnerName, dir)} {
		if !s.taken(id) {
			return id, nil
		}
	}
	return s.numbered(short), nil
}

// numbered returns the ID, or the ID with a number at its end if the ID is taken.
func (s *Service) numbered(id string) string {
	if !s.taken(id) {
		return id
	}
	for n := 2; n < 100; n++ {
		end := "-" + strconv.Itoa(n)
		if free := strings.Trim(id[:min(len(id), sources.MaxIDBytes-len(end))], "-") + end; !s.taken(free) {
			return free
		}
	}
	return id // AddSyncedSource or PublishSource then reports that the ID is taken
}

// taken reports whether a source has the ID. A synced source keeps its ID even after its
// publication has ended. The answer reveals no more than PublishSource, which refuses taken IDs.
func (s *Service) taken(id string) bool {
	_, err := s.sources.Find(id)
	if err != nil && s.syncs != nil {
		_, err = s.syncs.Space(id)
	}
	return err == nil
}

// sourceID creates an ID from an owner's name and a directory.
func sourceID(owner, dir string) string {
	clean := func(text string) string {
		return strings.Trim(strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return '-'
		}, strings.ToLower(text)), "-")
	}
	id := clean(owner)
	if name := clean(dir); name != "" {
		id += "-" + name
	}
	return strings.Trim(id[:min(len(id), sources.MaxIDBytes)], "-")
}

// PublishSourceInput is a source to publish. Source holds the ID, the texts, Dir and
// Everybody; other fields are ignored. Dir may be unchecked input.
type PublishSourceInput struct {
	Space   SpaceRef     `json:"space"`
	Source  space.Source `json:"source"`
	Readers []string     `json:"readers"` // names; ignored if the source is for everybody
	sources.Consent
}

// PublishSource publishes a directory of a space in the owner's name, or changes the texts
// and the readers of a source that is already published from there. An error about a field
// names the field (fault.FieldOf).
func (s *Service) PublishSource(ctx context.Context, a Actor, in PublishSourceInput) (space.Source, error) {
	m, err := s.authorizeSpace(ctx, a, "PublishSource", in.Space)
	if err != nil {
		return space.Source{}, err
	}
	src := in.Source
	if _, err := s.sources.Find(src.ID); err != nil && s.taken(src.ID) {
		return space.Source{}, sources.Taken(src.ID)
	}
	src.Space, src.By = m.ID, m.Owner
	if src.Users, err = s.readers(ctx, in.Readers); err != nil {
		return space.Source{}, err
	}
	if src, err = s.sources.Add(ctx, src, in.Consent); err != nil {
		return space.Source{}, err
	}
	s.record(ctx, a, "source.publish", src.ID, map[string]any{"space": src.Space, "dir": src.Dir, "everybody": src.Everybody, "users": src.Users})
	return s.namedOne(ctx, src)
}

// readers returns the IDs of the people with the given names, who are to be readers of a source.
func (s *Service) readers(ctx context.Context, names []string) ([]space.UserID, error) {
	var ids []space.UserID
	for _, name := range names {
		u, err := s.accounts.FindUser(ctx, name)
		if fault.CodeOf(err) == fault.NotFound {
			return nil, fault.New(fault.Invalid, "%s", fault.PublicOf(err)).In(space.SourceReaders)
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, u.ID)
	}
	return ids, nil
}

// UnpublishSourceInput names a source.
type UnpublishSourceInput struct {
	ID string `json:"id"`
}

// UnpublishSource ends a source, so that nobody can read it.
func (s *Service) UnpublishSource(ctx context.Context, a Actor, in UnpublishSourceInput) (None, error) {
	if err := s.authorize(a, "UnpublishSource"); err != nil {
		return None{}, err
	}
	src, err := s.sources.Find(in.ID)
	if err != nil {
		return None{}, err
	}
	of := src.Space
	if _, err := s.authorizeSpace(ctx, a, "UnpublishSource", SpaceRef{ID: of}); err != nil {
		// Do not reveal the source to actors who may not read it.
		if _, hidden := s.readable(ctx, a, in.ID); hidden != nil {
			return None{}, sources.NotThere(in.ID)
		}
		return None{}, err
	}
	if err := s.sources.Remove(ctx, of, in.ID); err != nil {
		return None{}, err
	}
	s.record(ctx, a, "source.unpublish", in.ID, map[string]any{"space": of})
	return None{}, nil
}
