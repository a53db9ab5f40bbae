package server

import (
	"context"
	"os"
	"sync"
	"time"

	"satchel/gitstore/sources"
	"satchel/gitstore/sources/syncs"
	"satchel/gitstore/sources/upstream"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// sourcesFile follows the sources of the configuration file. The other keys of the file are read
// only at the start.
type sourcesFile struct {
	name  string // empty if there is no file
	again chan struct{}
	seen  fileState // the version that was read last

	mu sync.Mutex
	// problem says why the file cannot be read. problems lists the entries that could not be
	// applied.
	problem  string
	problems []service.SourceProblem
}

func newSourcesFile(cfg *config.Config) *sourcesFile {
	f := &sourcesFile{name: cfg.File, again: make(chan struct{}, 1)}
	f.seen = f.state()
	return f
}

// ReloadSources requests that the sources of the configuration file are read again. It does not
// wait until they are read.
func (s *Server) ReloadSources() {
	select {
	case s.file.again <- struct{}{}:
	default: // a request is already waiting
	}
}

// fileEvery is how often the server checks whether the configuration file has changed.
const fileEvery = 10 * time.Second

// followFile applies the sources of the configuration file at the start and after each change,
// until ctx ends. Entries that could not be applied are tried again every minute.
func (s *Server) followFile(ctx context.Context) {
	if s.applySources(ctx, s.Config.Sources); s.file.name == "" {
		return
	}
	tick, retry := time.NewTicker(fileEvery), time.NewTicker(time.Minute)
	defer tick.Stop()
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.file.again:
		case <-retry.C:
			if len(s.file.unapplied()) == 0 {
				continue
			}
		case <-tick.C:
			if s.file.state() == s.file.seen {
				continue
			}
		}
		s.file.seen = s.file.state()
		s.readSources(ctx)
	}
}

// fileState identifies a version of the file.
type fileState struct {
	changed time.Time
	size    int64
}

func (f *sourcesFile) state() fileState {
	info, err := os.Stat(f.name)
	if err != nil {
		return fileState{}
	}
	return fileState{info.ModTime(), info.Size()}
}

// unapplied returns the problems of the file and of its entries.
func (f *sourcesFile) unapplied() []service.SourceProblem {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.problem != "" {
		return []service.SourceProblem{{Problem: f.problem}}
	}
	return f.problems
}

// readSources reads the file and applies it. If the file has a mistake, the sources stay as they
// are.
func (s *Server) readSources(ctx context.Context) {
	list, err := config.LoadSources(s.file.name, CheckSource)
	s.file.mu.Lock()
	s.file.problem = ""
	if err != nil {
		s.file.problem = fault.PublicOf(err)
	}
	s.file.mu.Unlock()
	if err != nil {
		s.Log.Error("the configuration file has a mistake; its sources stay as they were", "file", s.file.name, "error", fault.PublicOf(err))
		return
	}
	s.applySources(ctx, list)
}

func (s *Server) applySources(ctx context.Context, list []config.SyncedSource) {
	in := service.ConfigureSourcesInput{Sources: []service.SyncedSourceInput{}}
	for _, e := range list {
		in.Sources = append(in.Sources, entryInput(e))
	}
	done, err := s.Service.ConfigureSources(ctx, service.Configuration(), in)
	if err != nil {
		if ctx.Err() == nil {
			s.Log.Error("apply the sources of the configuration file", "error", err)
			done.Problems = append(done.Problems, service.SourceProblem{Problem: fault.PublicOf(err)})
		}
	} else if len(done.Added)+len(done.Changed)+len(done.Left) > 0 {
		s.Log.Info("the sources of the configuration file have changed", "added", done.Added, "changed", done.Changed, "left", done.Left)
	}
	s.file.mu.Lock()
	defer s.file.mu.Unlock()
	s.file.problems = done.Problems
}

func entryInput(e config.SyncedSource) service.SyncedSourceInput {
	in := service.SyncedSourceInput{
		Source:  space.Source{ID: e.ID, SourceText: space.SourceText{Title: e.Title, Description: e.Description, Aliases: e.Aliases}, Everybody: e.Everybody},
		Readers: e.Readers,
		Setting: syncs.Setting{Kind: e.Kind, Settings: e.Settings},
	}
	if e.Every != nil {
		seconds := int64(e.Every.Seconds())
		in.Every = &seconds
	}
	return in
}

// CheckSource checks an entry of the configuration file; see config.Source.CheckSource.
func CheckSource(e config.SyncedSource) (known []string, err error) {
	for _, k := range upstream.Kinds() {
		if k.Name == e.Kind {
			known = upstream.Settings(k.New())
		}
	}
	in := entryInput(e)
	if err := sources.CheckID(e.ID); err != nil {
		return known, fault.Wrap(err, fault.Invalid, "%s", fault.PublicOf(err)).In("id")
	}
	return known, syncs.Check(in.Setting)
}
