package service

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"satchel/gitstore/sources/syncs"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// ConfigureSourcesInput is the list of sources in the configuration file.
type ConfigureSourcesInput struct {
	Sources []SyncedSourceInput `json:"sources"`
}

// SourceProblem is an entry of the configuration file that could not be applied.
type SourceProblem struct {
	ID      string `json:"id"`
	Problem string `json:"problem"`
}

// ConfiguredSources is what ConfigureSources did.
type ConfiguredSources struct {
	Added   []string `json:"added"`
	Changed []string `json:"changed"`
	// Left are the sources whose entry has left the file.
	Left     []string        `json:"left"`
	Problems []SourceProblem `json:"problems"`
}

// ConfigureSources makes the sources of the configuration file agree with their entries. If the
// operator added a source by a command, an entry with the same ID takes over the source. A source
// whose entry has left the file stays, and is synced on request only. The result names each entry
// that could not be applied.
func (s *Service) ConfigureSources(ctx context.Context, a Actor, in ConfigureSourcesInput) (ConfiguredSources, error) {
	var out ConfiguredSources
	if err := s.authorize(a, "ConfigureSources"); err != nil {
		return out, err
	}
	if a.kind != operator {
		return out, fault.New(fault.Forbidden, "Only the operator of this server may do that.")
	}
	if s.syncs == nil {
		return out, fault.New(fault.Unavailable, "Sources cannot be updated here.")
	}
	ids := map[string]bool{}
	for _, entry := range in.Sources {
		id := entry.Source.ID
		ids[id] = true
		added, changed, err := s.configure(ctx, a, entry)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case err != nil:
			s.log.Warn("a source of the configuration was not applied", "source", id, "error", err)
			out.Problems = append(out.Problems, SourceProblem{id, fault.PublicOf(err)})
		case added:
			out.Added = append(out.Added, id)
		case changed:
			out.Changed = append(out.Changed, id)
		}
	}
	var errs []error
	for _, sync := range s.syncs.All() {
		if sync.Origin == space.OriginFile && !ids[sync.Source] {
			errs = append(errs, s.syncs.SetOrigin(ctx, sync.Source, space.OriginLeft))
			out.Left = append(out.Left, sync.Source)
			s.record(ctx, a, "source.change", sync.Source, map[string]any{"origin": space.OriginLeft})
		}
	}
	return out, errors.Join(errs...)
}

// configure applies one entry of the configuration file.
func (s *Service) configure(ctx context.Context, a Actor, in SyncedSourceInput) (added, changed bool, err error) {
	id := in.Source.ID
	had, synced := s.syncs.Get(id)
	src, err := s.sources.Find(id)
	switch {
	case err == nil && !src.Upstream() || synced && had.Origin == space.OriginPerson && src.By != "":
		return false, false, fault.New(fault.Conflict, "A person has a source %q already. Choose another id, or ask the person to remove the source.", id)
	case synced && err != nil:
		return false, false, fault.New(fault.Conflict, "The source %q has ended. Remove it with “satchel source remove %s”; then the entry adds it again.", id, id)
	case !synced:
		in.Origin = space.OriginFile
		_, err := s.AddSyncedSource(ctx, a, in)
		return err == nil, false, err
	case string(had.Kind) != in.Kind:
		return false, false, fault.New(fault.Conflict, "The source %q is of the kind %s. Choose another id for the kind %s, or take the entry out, remove the source with “satchel source remove %s”, and put the entry back.", id, had.Kind, in.Kind, id)
	}
	return s.reconfigure(ctx, a, src, had, in)
}

// reconfigure changes a source where it differs from its entry.
func (s *Service) reconfigure(ctx context.Context, a Actor, src space.Source, had space.Sync, in SyncedSourceInput) (added, changed bool, err error) {
	setting, err := syncs.Resolve(in.Setting)
	if err != nil {
		return false, false, err
	}
	users, err := s.readers(ctx, in.Readers)
	if err != nil {
		return false, false, err
	}
	every, err := syncs.EveryOf(setting)
	if err != nil {
		return false, false, err
	}
	// If somebody paused the source, the entry ends the pause.
	seconds, paused := int64(every.Seconds()), false
	setting.Every, setting.Paused = &seconds, &paused
	text := in.Source.SourceText
	text.Title = cmp.Or(text.Title, in.Source.ID)
	slices.Sort(users)
	users = slices.Compact(users)
	if in.Source.Everybody {
		users = nil
	}
	same := had.Origin == space.OriginFile && string(setting.Settings) == string(had.Settings) && seconds == had.Every && !had.Paused &&
		text == src.SourceText && in.Source.Everybody == src.Everybody && slices.Equal(users, src.Users)
	if same {
		return false, false, nil
	}
	setting.Trusted = true
	if err := s.syncs.Change(ctx, src.ID, setting); err != nil {
		return false, false, err
	}
	src.SourceText, src.Everybody, src.Users = text, in.Source.Everybody, users
	if _, err := s.sources.ChangeSynced(ctx, src); err != nil {
		return false, false, err
	}
	if had.Origin != space.OriginFile {
		if err := s.syncs.SetOrigin(ctx, src.ID, space.OriginFile); err != nil {
			return false, false, err
		}
	}
	s.record(ctx, a, "source.change", src.ID, map[string]any{"settings": setting.Settings, "every": setting.Every, "everybody": src.Everybody, "users": src.Users, "origin": space.OriginFile})
	return false, true, nil
}

// fromFile returns an error if the settings of a source come from the configuration file.
func (s *Service) fromFile(id string) error {
	if sync, ok := s.syncs.Get(id); ok && sync.Origin == space.OriginFile {
		return fault.New(fault.Forbidden, "The source %s comes from the configuration file of this server. The operator changes its entry there, or takes the entry out before the source is removed.", id)
	}
	return nil
}
