package service

import (
	"context"
	"encoding/json"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// SourceOrigin tells the readers of a source which upstream its pages come from. The JSON names
// are those in the settings of sources of the kinds github and youtube.
type SourceOrigin struct {
	Repo        string `json:"repo,omitempty"`
	Branch      string `json:"branch,omitempty"` // empty: the repository's default branch
	ContentPath string `json:"content_path,omitempty"`
	OutputPath  string `json:"output_path,omitempty"`
	ReadmeOnly  bool   `json:"readme_only,omitempty"`
	ChannelID   string `json:"channel_id,omitempty"`
	Handle      string `json:"handle,omitempty"`
	MaxVideos   int    `json:"max_videos,omitempty"`
}

// DescribedSource is a source with its origin.
type DescribedSource struct {
	space.Source
	Origin SourceOrigin `json:"origin"`
}

// DescribeSources lists the sources that the actor may read, with their origins, sorted by ID.
func (s *Service) DescribeSources(ctx context.Context, a Actor, in ListSourcesInput) ([]DescribedSource, error) {
	if err := s.authorize(a, "DescribeSources"); err != nil {
		return nil, err
	}
	all, err := s.ListSources(ctx, a, in)
	if err != nil {
		return nil, err
	}
	settings := map[string]json.RawMessage{}
	if s.syncs != nil {
		for _, x := range s.syncs.All() {
			settings[x.Source] = x.Settings
		}
	}
	out := make([]DescribedSource, len(all))
	for i, src := range all {
		out[i].Source = src
		if src.Upstream() && len(settings[src.ID]) > 0 {
			if err := json.Unmarshal(settings[src.ID], &out[i].Origin); err != nil {
				return nil, fault.Wrap(err, fault.Internal, "The settings of the source %s cannot be read.", src.ID)
			}
		}
	}
	return out, nil
}

// SyncSourcesInput says how all sources are synced. The fields are those of SyncSourceInput.
type SyncSourcesInput struct {
	Reset      bool `json:"reset"`
	Confirm    bool `json:"confirm"`
	Background bool `json:"background"`
}

// SyncSources updates every source that the actor may read, as SyncSource does.
func (s *Service) SyncSources(ctx context.Context, a Actor, in SyncSourcesInput) ([]SyncedSource, error) {
	if err := s.authorize(a, "SyncSources"); err != nil {
		return nil, err
	}
	all, err := s.ListSources(ctx, a, ListSourcesInput{})
	if err != nil {
		return nil, err
	}
	out := make([]SyncedSource, len(all))
	for i, src := range all {
		out[i], err = s.SyncSource(ctx, a, SyncSourceInput{ID: src.ID, Reset: in.Reset, Confirm: in.Confirm, Background: in.Background})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// RebuildSnapshots rebuilds the snapshot of every source that the actor may read, from the commits
// that the server has. It asks no upstream. If a rebuild fails, the state of the source says so.
func (s *Service) RebuildSnapshots(ctx context.Context, a Actor, _ None) ([]space.Source, error) {
	if err := s.authorize(a, "RebuildSnapshots"); err != nil {
		return nil, err
	}
	all, err := s.ListSources(ctx, a, ListSourcesInput{})
	if err != nil {
		return nil, err
	}
	for i, src := range all {
		reader := a.user
		if a.kind == operator {
			reader = src.By
		}
		if all[i], err = s.sources.Reset(ctx, reader, src.ID); err != nil {
			return nil, err
		}
	}
	return s.named(ctx, all)
}
