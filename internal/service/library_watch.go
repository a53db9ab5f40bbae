package service

import (
	"context"
	"strings"

	"satchel/auth/store"
	"satchel/gitstore/sources"
	"satchel/gitstore/sources/syncs"
	"satchel/gitstore/sources/upstream"
	"satchel/internal/space"
)

// ListSyncs describes how sources follow their upstreams, without settings and runs. It lists the
// sources that the actor may read and, for admins, all others too.
func (s *Service) ListSyncs(ctx context.Context, a Actor, in ListSourcesInput) ([]space.Sync, error) {
	if err := s.authorize(a, "ListSyncs"); err != nil {
		return nil, err
	}
	all, err := s.ListSources(ctx, a, in)
	if err != nil || s.syncs == nil {
		return []space.Sync{}, err
	}
	readable := map[string]bool{}
	for _, src := range all {
		readable[src.ID] = src.Upstream()
	}
	out := []space.Sync{}
	for _, st := range s.syncs.All() {
		if readable[st.Source] || a.admin {
			st.Settings = nil
			out = append(out, st)
		}
	}
	return out, nil
}

// CountFailedSyncs counts the sources that the actor may change and whose sync has a problem.
func (s *Service) CountFailedSyncs(_ context.Context, a Actor, _ None) (int, error) {
	if err := s.authorize(a, "CountFailedSyncs"); err != nil || s.syncs == nil {
		return 0, err
	}
	n := 0
	for _, st := range s.syncs.All() {
		if st.Problem == "" {
			continue
		}
		src, err := s.sources.Find(st.Source)
		if err != nil || src.Space != st.Space { // the publication of the source has ended
			src = space.Source{}
		}
		if s.manages(a, src) {
			n++
		}
	}
	return n, nil
}

// ListSourceKinds describes the kinds of sources that follow an upstream.
func (s *Service) ListSourceKinds(_ context.Context, a Actor, _ None) ([]space.SourceKindInfo, error) {
	if err := s.authorize(a, "ListSourceKinds"); err != nil {
		return nil, err
	}
	return upstream.Describe(), nil
}

// WaitForSyncInput names a source.
type WaitForSyncInput struct {
	ID string
	// Differs reports whether a status, without settings and runs, is news for the caller.
	Differs func(space.Sync) bool
}

// WaitForSync returns the status of a source, without settings and runs, as soon as it is news for
// the caller. If the context ends first, WaitForSync returns the error of the context.
func (s *Service) WaitForSync(ctx context.Context, a Actor, in WaitForSyncInput) (space.Sync, error) {
	if err := s.authorize(a, "WaitForSync"); err != nil {
		return space.Sync{}, err
	}
	may := func() error {
		_, _, err := s.followed(ctx, a, "WaitForSync", in.ID)
		return err
	}
	if err := may(); err != nil {
		return space.Sync{}, err
	}
	st, err := s.syncs.Wait(ctx, in.ID, in.Differs)
	if err == nil {
		err = may() // the right may have ended meanwhile
	}
	if err != nil {
		return space.Sync{}, err
	}
	st.Settings = nil
	return st, nil
}

// ManagedSource is a synced source with its history.
type ManagedSource struct {
	View
	Source space.Source
}

// OpenSyncedSource opens a synced source and its history for an actor who may change the source.
// Others see only the newest files (OpenSource).
func (s *Service) OpenSyncedSource(ctx context.Context, a Actor, id string) (ManagedSource, error) {
	src, err := s.managed(ctx, a, "OpenSyncedSource", id)
	if err == nil {
		src, err = s.namedOne(ctx, src)
	}
	view := View{store.Membership{Space: store.Space{ID: src.Space, Name: src.ID}, Role: space.Reader}, s}
	return ManagedSource{view, src}, err
}

// LicenceOf returns the licence that the files of a source state: its SPDX name, or the name of the
// file. It returns "" if no file at the root states one.
func (n Snapshot) LicenceOf(ctx context.Context) (string, error) {
	if n.Source.Commit == "" {
		return "", nil
	}
	all, err := n.Children(ctx, "")
	if err != nil {
		return "", err
	}
	for _, e := range all {
		if !e.Dir && e.Mode != space.Symlink && syncs.IsLicence(string(e.Path)) {
			b, err := n.ReadBlob(ctx, e.Blob)
			return syncs.LicenceOf(string(e.Path), b), err
		}
	}
	return "", nil
}

// freeSourceID returns a free ID for a source with a title.
func (s *Service) freeSourceID(title string) string {
	id := sourceID("", strings.ReplaceAll(title, ".", "-"))
	if id != "" && sources.CheckID(id) != nil { // the ID is reserved, or has only one letter
		id = sourceID(id, "source")
	}
	return s.numbered(id)
}
