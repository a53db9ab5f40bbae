package service

import (
	"context"
	"fmt"
	"io"
	"time"

	"satchel/gitstore/sources/syncs"
	"satchel/gitstore/sources/upstream"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// UploadToSourceInput is a file for an uploaded source.
type UploadToSourceInput struct {
	ID string
	// Name is the name of the file. Its extension says the format. The name can begin with a
	// directory of the source, such as guides/start.pdf. The files of a .zip archive keep their
	// own names.
	Name   string
	Stream io.Reader
	// Create adds the source with this title, description and audience if it does not exist.
	// The new source gets the ID from the field ID, and the kind upload.
	Create *SyncedSourceInput
}

// UploadedToSource is a source after an upload. The JSON is part of the command line's contract.
type UploadedToSource struct {
	space.Source
	Files []space.UploadedFile `json:"uploaded"`
	Run   space.SyncRun        `json:"run"`
}

// uploadTime is the maximum time for an upload and its conversion.
const uploadTime = 15 * time.Minute

// maxUploadsAtOnce is how many uploads a person can run at once. Each upload takes up to
// upstream.MaxUpload bytes of the disk while its client sends.
const maxUploadsAtOnce = 3

// UploadToSource adds the pages of a file to an uploaded source, or transcripts to a source that
// follows YouTube. The new pages replace those of an earlier file with the same name. If no page
// can be made of the file, nothing changes, and the error says why. Progress(ctx) gets the name of
// each converted file.
func (s *Service) UploadToSource(ctx context.Context, a Actor, in UploadToSourceInput) (UploadedToSource, error) {
	if err := s.authorize(a, "UploadToSource"); err != nil {
		return UploadedToSource{}, err
	}
	if s.syncs == nil {
		return UploadedToSource{}, fault.New(fault.Unavailable, "Sources cannot be updated here.")
	}
	_, err := s.managed(ctx, a, "UploadToSource", in.ID)
	create := in.Create != nil && fault.CodeOf(err) == fault.NotFound
	if err != nil && !create {
		return UploadedToSource{}, err
	}
	end, err := s.uploads.take(ctx, a.user)
	if err != nil {
		return UploadedToSource{}, err
	}
	defer end()
	ctx, cancel := context.WithTimeoutCause(ctx, uploadTime, fault.New(fault.TooLarge, "The files take too long to convert. Upload fewer at a time."))
	defer cancel()
	say := Progress(ctx)
	up, err := s.syncs.Receive(ctx, in.ID, in.Name, in.Stream, func(file string, done, total int) {
		say(fmt.Sprintf("%s: %d of %d files", file, done, total))
	})
	if err != nil {
		return UploadedToSource{}, err
	}
	defer up.Discard()
	switch {
	case len(up.Received) == 0:
		return UploadedToSource{}, fault.New(fault.Invalid, "The archive has no files.")
	case up.Pages() == 0:
		first := up.Received[0]
		return UploadedToSource{}, fault.New(fault.Invalid, "No page can be made of this upload. %s", first.Problem).In("name")
	}
	if create {
		add := *in.Create
		add.Source.ID, add.Setting = in.ID, syncs.Setting{Kind: upstream.Upload}
		if _, err := s.AddSyncedSource(ctx, a, add); err != nil {
			return UploadedToSource{}, err
		}
	}
	// Receiving takes time, in which another source can get the ID.
	if _, err := s.managed(ctx, a, "UploadToSource", in.ID); err != nil {
		return UploadedToSource{}, err
	}
	run, err := s.syncs.Store(ctx, in.ID, up)
	if err != nil {
		return UploadedToSource{}, err
	}
	s.record(ctx, a, "source.upload", in.ID, map[string]any{"name": in.Name, "pages": up.Pages()})
	return s.uploaded(ctx, in.ID, run, up.Received)
}

// RemoveFromSourceInput names files of an uploaded source.
type RemoveFromSourceInput struct {
	ID string `json:"id"`
	// Names are the paths of pages, or the names of the uploaded files.
	Names []string `json:"names"`
}

// RemoveFromSource removes files from an uploaded source. If a file does not exist, nothing
// changes.
func (s *Service) RemoveFromSource(ctx context.Context, a Actor, in RemoveFromSourceInput) (UploadedToSource, error) {
	if _, err := s.managed(ctx, a, "RemoveFromSource", in.ID); err != nil {
		return UploadedToSource{}, err
	}
	run, err := s.syncs.Take(ctx, in.ID, in.Names)
	if err != nil {
		return UploadedToSource{}, err
	}
	s.record(ctx, a, "source.upload.remove", in.ID, map[string]any{"names": in.Names})
	return s.uploaded(ctx, in.ID, run, []space.UploadedFile{})
}

// uploaded returns a source after a run, or the run's problem.
func (s *Service) uploaded(ctx context.Context, id string, run space.SyncRun, files []space.UploadedFile) (UploadedToSource, error) {
	if run.Problem != "" {
		return UploadedToSource{}, fault.New(fault.Unavailable, "The files were not stored. %s", run.Problem)
	}
	src, err := s.sources.Find(id)
	if err == nil {
		src, err = s.namedOne(ctx, src)
	}
	return UploadedToSource{Source: src, Run: run, Files: files}, err
}
