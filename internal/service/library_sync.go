package service

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"satchel/auth/store"
	"satchel/gitstore/sources"
	"satchel/gitstore/sources/syncs"
	"satchel/gitstore/sources/upstream"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// SyncedSourceInput is a source that follows an upstream. Only the ID, the texts and Everybody
// of Source are used.
type SyncedSourceInput struct {
	Source  space.Source `json:"source"`
	Readers []string     `json:"readers"` // names; ignored if the source is for everybody
	syncs.Setting
}

// mayFollow returns the setting, with its kind and its defaults filled in, if the actor may add a
// source with the setting. People who are not admins can only upload files, or use an address that
// the configuration allows.
func (s *Service) mayFollow(a Actor, in syncs.Setting) (syncs.Setting, error) {
	if s.syncs == nil {
		return in, fault.New(fault.Unavailable, "Sources cannot be updated here.")
	}
	in, err := syncs.Resolve(in)
	if err != nil {
		return in, err
	}
	in.Trusted, in.By = a.kind == operator, a.user
	if in.Kind == upstream.Upload {
		return in, nil // the files of an upload come from the person and not from an address
	}
	if in.Kind == upstream.Directory && a.kind != operator {
		return in, fault.New(fault.Forbidden, "Only the operator of this server can add a directory, with satchel source add.").In("kind")
	}
	for _, p := range syncs.LocalPaths(in.Settings) {
		if upstream.Overlap(p, filepath.Dir(s.o.SpacesDir)) {
			return in, fault.New(fault.Invalid, "A source may neither be in the data directory of this server nor contain it.").In("path")
		}
	}
	if a.kind != operator && !a.admin && !syncs.Allowed(s.o.AllowSources, in.Settings) {
		return in, fault.New(fault.Forbidden, "You may not add sources from this address. An admin of this server can add the source. The operator can allow the address in the configuration (library.allow_sources).").In("url")
	}
	return in, nil
}

// PreviewSyncedSource returns what a new source would contain. It keeps nothing.
func (s *Service) PreviewSyncedSource(ctx context.Context, a Actor, in SyncedSourceInput) (space.SyncPreview, error) {
	if err := s.authorize(a, "PreviewSyncedSource"); err != nil {
		return space.SyncPreview{}, err
	}
	setting, err := s.mayFollow(a, in.Setting)
	if err != nil {
		return space.SyncPreview{}, err
	}
	p, err := s.syncs.Preview(ctx, setting, saying(ctx))
	if err == nil {
		p.ID = s.freeSourceID(p.Title)
	}
	return p, err
}

// AddSyncedSource adds a source that follows an upstream. Its files come with its first sync,
// which a running server starts at once. An error about a field names the field (fault.FieldOf).
func (s *Service) AddSyncedSource(ctx context.Context, a Actor, in SyncedSourceInput) (space.Source, error) {
	if err := s.authorize(a, "AddSyncedSource"); err != nil {
		return space.Source{}, err
	}
	if in.Source.ID == "" && in.Source.Title != "" {
		in.Source.ID = s.freeSourceID(in.Source.Title)
	}
	if err := sources.CheckID(in.Source.ID); err != nil {
		return space.Source{}, err
	}
	setting, err := s.mayFollow(a, in.Setting)
	if err != nil {
		return space.Source{}, err
	}
	src := in.Source
	src.Space, src.By = space.NewSpaceID(), a.user
	if src.Users, err = s.readers(ctx, in.Readers); err != nil {
		return space.Source{}, err
	}
	owner := a.user
	if a.kind == operator {
		if owner, err = s.custodian(ctx); err != nil {
			return space.Source{}, err
		}
	}
	s.syncs.Reserve(src.Space)
	if _, err := s.git.Create(ctx, src.Space, space.ChangeSet{}, space.Meta{Author: space.Server(), Message: "Start the source " + src.ID, Tool: "sync"}); err != nil {
		return space.Source{}, err
	}
	if err := s.accounts.CreateSourceSpace(ctx, a.audit(), owner, src.Space, src.ID); err != nil {
		s.removeSpace(ctx, src.Space)
		return space.Source{}, err
	}
	added, err := s.syncs.Add(ctx, src, setting)
	if err != nil {
		s.dropSyncedSpace(ctx, a, src.Space)
		return space.Source{}, err
	}
	s.record(ctx, a, "source.add", added.ID, map[string]any{"kind": setting.Kind, "settings": setting.Settings, "everybody": added.Everybody, "users": added.Users})
	return s.namedOne(ctx, added)
}

// custodian returns the person in whose name the operator adds sources: the first admin, or the
// first person if there is no admin. Every space needs an owner in the database. The source itself
// belongs to nobody.
func (s *Service) custodian(ctx context.Context) (space.UserID, error) {
	users, err := s.accounts.ListUsers(ctx)
	if err != nil {
		return "", err
	}
	if len(users) == 0 {
		return "", fault.New(fault.NotFound, "There is no user yet: start satchel serve once, or use satchel user add NAME.")
	}
	return slices.MinFunc(users, func(x, y store.User) int {
		if x.Admin != y.Admin {
			if x.Admin {
				return -1
			}
			return 1
		}
		return x.Created.Compare(y.Created)
	}).ID, nil
}

func (s *Service) removeSpace(ctx context.Context, id space.SpaceID) {
	if err := s.git.Remove(context.WithoutCancel(ctx), id); err != nil {
		s.log.Error("remove the space of a source that was not added", "space", id, "err", err)
	}
}

// dropSyncedSpace deletes the space of a source. A running server removes its files in the
// background.
func (s *Service) dropSyncedSpace(ctx context.Context, a Actor, id space.SpaceID) {
	remove := s.running.DeleteSpace
	if remove == nil {
		remove = s.o.DeleteSpace
	}
	if remove == nil {
		return
	}
	if _, err := remove(context.WithoutCancel(ctx), a.audit(), id, ""); err != nil {
		s.log.Error("delete the space of a source", "space", id, "err", err)
	}
}

// manages reports whether the actor may change a source: the operator, an admin, or the person who
// added it.
func (s *Service) manages(a Actor, src space.Source) bool {
	return a.kind == operator || a.admin || src.By != "" && src.By == a.user
}

// followed returns a synced source that the actor may read or change. manages reports whether the
// actor may change the source.
func (s *Service) followed(ctx context.Context, a Actor, operation, id string) (src space.Source, manages bool, err error) {
	src, err = s.managed(ctx, a, operation, id)
	if fault.CodeOf(err) != fault.Forbidden {
		return src, err == nil, err
	}
	// The actor can read the source but not change it. The source can also be a published
	// directory, which is not synced.
	if src, err = s.readable(ctx, a, id); err == nil && !src.Upstream() {
		err = sources.NotThere(id)
	}
	return src, false, err
}

// managed returns a synced source that the actor may change.
func (s *Service) managed(ctx context.Context, a Actor, operation, id string) (space.Source, error) {
	if err := s.authorize(a, operation); err != nil {
		return space.Source{}, err
	}
	src, err := s.sources.Find(id)
	manages := s.manages(a, src)
	switch {
	case err != nil && manages && s.syncs != nil:
		// The publication of the source has ended. Its sync can still be removed.
		of, err := s.syncs.Space(id)
		return space.Source{ID: id, Space: of}, err
	case err != nil:
		return space.Source{}, err
	case !manages:
		if _, hidden := s.readable(ctx, a, id); hidden != nil {
			return space.Source{}, sources.NotThere(id)
		}
		return space.Source{}, fault.New(fault.Forbidden, "Only an admin, or the person who added this source, may do that.")
	case !src.Upstream() || s.syncs == nil:
		return space.Source{}, fault.New(fault.Invalid, "The source %s is a directory of a space. Publish it again to change it.", id)
	}
	return src, nil
}

// ChangeSyncedSourceInput holds new values for a source. Nil means that a value stays.
type ChangeSyncedSourceInput struct {
	ID          string    `json:"id"`
	Title       *string   `json:"title,omitempty"`
	Description *string   `json:"description,omitempty"`
	Aliases     *string   `json:"aliases,omitempty"`
	Everybody   *bool     `json:"everybody,omitempty"`
	Readers     *[]string `json:"readers,omitempty"` // names; if set, not for everybody
	syncs.Setting
}

// ChangeSyncedSource changes the texts, the readers, the settings or the schedule of a source.
func (s *Service) ChangeSyncedSource(ctx context.Context, a Actor, in ChangeSyncedSourceInput) (space.Source, error) {
	src, err := s.managed(ctx, a, "ChangeSyncedSource", in.ID)
	if err == nil {
		err = s.fromFile(in.ID)
	}
	if err != nil {
		return space.Source{}, err
	}
	if in.Title != nil {
		src.Title = *in.Title
	}
	if in.Description != nil {
		src.Description = *in.Description
	}
	if in.Aliases != nil {
		src.Aliases = *in.Aliases
	}
	if in.Everybody != nil {
		src.Everybody = *in.Everybody
	}
	if in.Readers != nil {
		src.Everybody = false
		if src.Users, err = s.readers(ctx, *in.Readers); err != nil {
			return space.Source{}, err
		}
	}
	setting := in.Setting
	if len(setting.Settings) > 0 {
		setting.Kind = string(src.Kind)
		if setting, err = s.mayFollow(a, setting); err != nil {
			return space.Source{}, err
		}
	}
	if err := s.syncs.Change(ctx, src.ID, setting); err != nil {
		return space.Source{}, err
	}
	if src, err = s.sources.ChangeSynced(ctx, src); err != nil {
		return space.Source{}, err
	}
	s.record(ctx, a, "source.change", src.ID, map[string]any{"settings": setting.Settings, "every": setting.Every, "paused": setting.Paused, "everybody": src.Everybody, "users": src.Users})
	return s.namedOne(ctx, src)
}

// RemoveSyncedSourceInput names a source.
type RemoveSyncedSourceInput struct {
	ID string `json:"id"`
}

// RemoveSyncedSource ends a synced source, and deletes its files and their history.
func (s *Service) RemoveSyncedSource(ctx context.Context, a Actor, in RemoveSyncedSourceInput) (None, error) {
	src, err := s.managed(ctx, a, "RemoveSyncedSource", in.ID)
	if err == nil {
		err = s.fromFile(in.ID)
	}
	if err != nil {
		return None{}, err
	}
	if err := s.syncs.Remove(ctx, src.ID); err != nil {
		return None{}, err
	}
	s.dropSyncedSpace(ctx, a, src.Space)
	s.record(ctx, a, "source.remove", src.ID, map[string]any{"space": src.Space})
	return None{}, nil
}

// SyncSourceInput names a source.
type SyncSourceInput struct {
	ID string `json:"id"`
	// Reset rebuilds the snapshot even if it is up to date. It fetches every file of a synced
	// source again.
	Reset bool `json:"reset"`
	// The following fields are for synced sources. Confirm lets the sync remove most files. DryRun
	// changes nothing. Background returns before the sync ends.
	Confirm    bool `json:"confirm"`
	DryRun     bool `json:"dry_run"`
	Background bool `json:"background"`
}

// SyncedSource is a source after a sync.
type SyncedSource struct {
	space.Source
	// Run is the sync that ran. DryRun is what a sync would change. A source that is a published
	// directory has neither.
	Run    *space.SyncRun     `json:"run,omitempty"`
	DryRun *space.SyncPreview `json:"dry_run,omitempty"`
}

// SyncSource updates a source now. If that fails, the source's state and problem say so.
func (s *Service) SyncSource(ctx context.Context, a Actor, in SyncSourceInput) (SyncedSource, error) {
	if err := s.authorize(a, "SyncSource"); err != nil {
		return SyncedSource{}, err
	}
	if src, err := s.sources.Find(in.ID); err == nil && src.Upstream() && s.syncs != nil {
		return s.syncUpstream(ctx, a, src, in)
	}
	if in.DryRun {
		if _, err := s.readable(ctx, a, in.ID); err != nil {
			return SyncedSource{}, err
		}
		return SyncedSource{}, fault.New(fault.Invalid, "Only a source that follows an upstream can show what an update would change.")
	}
	reader := a.user
	if a.kind == operator {
		if src, err := s.sources.Find(in.ID); err == nil {
			reader = src.By
		}
	}
	sync := s.sources.Sync
	if in.Reset {
		sync = s.sources.Reset
	}
	src, err := sync(ctx, reader, in.ID)
	if err != nil {
		return SyncedSource{}, err
	}
	src, err = s.namedOne(ctx, src)
	return SyncedSource{Source: src}, err
}

// barWidth is the width of a sync's progress bar, in characters.
const barWidth = 30

func (s *Service) syncUpstream(ctx context.Context, a Actor, src space.Source, in SyncSourceInput) (SyncedSource, error) {
	if _, err := s.readable(ctx, a, src.ID); err != nil && !s.manages(a, src) {
		return SyncedSource{}, err
	}
	if in.Reset && a.kind == client && src.By != a.user {
		in.Reset = false // clients set Reset without need, and a reset is work for the upstream
	}
	if in.Reset || in.Confirm || in.DryRun {
		if _, err := s.managed(ctx, a, "SyncSource", src.ID); err != nil {
			return SyncedSource{}, err
		}
	}
	progress := saying(ctx)
	var out SyncedSource
	switch {
	case in.DryRun:
		p, err := s.syncs.DryRun(ctx, src.ID, progress)
		if err != nil {
			return out, err
		}
		out.DryRun = &p
	case in.Background:
		if err := s.syncs.Begin(ctx, src.ID, in.Reset, in.Confirm); err != nil {
			return out, err
		}
	default:
		r, err := s.syncs.Sync(ctx, src.ID, in.Reset, in.Confirm, progress)
		if err != nil {
			return out, err
		}
		out.Run = &r
	}
	if in.Reset || in.Confirm {
		s.record(ctx, a, "source.sync", src.ID, map[string]any{"reset": in.Reset, "confirm": in.Confirm})
	}
	src, err := s.sources.Find(src.ID)
	if err == nil {
		out.Source, err = s.namedOne(ctx, src)
	}
	return out, err
}

// saying returns a function that reports the progress of a sync in words.
func saying(ctx context.Context) func(space.SyncProgress) {
	say := Progress(ctx)
	return func(p space.SyncProgress) {
		text := p.Text()
		if p.Step == "fetch" && p.Total > 0 {
			filled := min(p.Done, p.Total) * barWidth / p.Total
			text = "[" + strings.Repeat("#", filled) + strings.Repeat(".", barWidth-filled) + "] " + text
		}
		say(text)
	}
}

// CancelSyncInput names a source.
type CancelSyncInput struct {
	ID string `json:"id"`
}

// CancelSync ends the running sync of a source. The error is a fault.Conflict if none runs.
func (s *Service) CancelSync(ctx context.Context, a Actor, in CancelSyncInput) (None, error) {
	src, err := s.managed(ctx, a, "CancelSync", in.ID)
	if err != nil {
		return None{}, err
	}
	if err := s.syncs.Cancel(ctx, src.ID); err != nil {
		return None{}, err
	}
	s.record(ctx, a, "source.cancel", src.ID, nil)
	return None{}, nil
}

// ListSyncRunsInput names a source.
type ListSyncRunsInput struct {
	ID string `json:"id"`
}

// ListSyncRuns describes how a source follows its upstream, with its last syncs. Only those who may
// change the source see the settings.
func (s *Service) ListSyncRuns(ctx context.Context, a Actor, in ListSyncRunsInput) (space.Sync, error) {
	if err := s.authorize(a, "ListSyncRuns"); err != nil {
		return space.Sync{}, err
	}
	_, manages, err := s.followed(ctx, a, "ListSyncRuns", in.ID)
	if err != nil {
		return space.Sync{}, err
	}
	st, err := s.syncs.Status(ctx, in.ID)
	if st.Manages = manages; !manages {
		st.Settings = nil
	}
	return st, err
}
