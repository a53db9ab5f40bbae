package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/service"
)

// snapshotRepository is the state of the repository that has a copy of the synced sources.
type snapshotRepository struct {
	changed chan struct{} // gets a value when a sync has ended

	mu      sync.Mutex
	problem string
}

// snapshotEvery is how often the server checks whether the audience of a source has changed, or
// whether a source was removed. Syncs are noticed at once.
const snapshotEvery = time.Minute

// sourceSynced notes that a sync has ended.
func (r *snapshotRepository) sourceSynced() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *snapshotRepository) trouble() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problem
}

// followSnapshot keeps the space of the snapshot repository up to date until ctx ends. The
// repository is the space's remote, so the commits are pushed to it.
func (s *Server) followSnapshot(ctx context.Context) {
	cfg := s.Config.Snapshot
	ready, shown := false, ""
	tick := time.NewTicker(snapshotEvery)
	defer tick.Stop()
	for {
		var err error
		if !ready {
			err = s.openSnapshot(ctx, cfg)
			ready = err == nil
		}
		if cfg.Repo == "" && ready {
			return
		}
		if now := s.snapshotSources(cfg.Restricted); ready && now != shown {
			if err = s.updateSnapshot(ctx, cfg.Restricted); err == nil {
				shown = now
			}
		}
		s.noteSnapshot(ctx, err)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.snapshot.changed:
		}
	}
}

func (s *Server) openSnapshot(ctx context.Context, cfg config.Snapshot) error {
	in := service.ConfigureSnapshotInput{URL: cfg.Repo, Branch: cfg.Branch}
	if in.URL != "" && !strings.Contains(in.URL, ":") && strings.Count(in.URL, "/") == 1 {
		in.URL = strings.TrimSuffix(s.Config.Auth.GitHub.URL, "/") + "/" + in.URL + ".git"
	}
	var err error
	if in.Token, err = cfg.Token.Read("snapshot.token"); err != nil {
		return err
	}
	_, err = s.Service.ConfigureSnapshot(ctx, service.Configuration(), in)
	return err
}

func (s *Server) updateSnapshot(ctx context.Context, restricted bool) error {
	refused, err := s.syncs.UpdateSnapshot(ctx, service.SnapshotSpace, restricted)
	if refused > 0 {
		s.Log.Warn("the snapshot repository lacks files that look like they contain keys", "files", refused)
	}
	return err
}

// snapshotSources returns a text that identifies the content of the snapshot. It lists the sources
// and their commits.
func (s *Server) snapshotSources(restricted bool) string {
	var b strings.Builder
	for _, src := range s.sources.All() {
		if src.Upstream() && src.Commit != "" && (src.Everybody || restricted) {
			fmt.Fprintln(&b, src.ID, src.Commit)
		}
	}
	return b.String()
}

func (s *Server) noteSnapshot(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.snapshot.mu.Lock()
	defer s.snapshot.mu.Unlock()
	if s.snapshot.problem = ""; err != nil {
		s.snapshot.problem = fault.PublicOf(err)
		s.Log.Error("the snapshot repository was not updated; it is tried again", "error", err)
	}
}
