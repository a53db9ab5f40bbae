package service

import (
	"context"

	"satchel/gitstore/remotes"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// SnapshotSpace is the space with the files of all synced sources. Its remote is the snapshot
// repository of the configuration.
const SnapshotSpace space.SpaceID = "s_aaaaaaaaaaaaaaaaaaaaaaaaaa"

// snapshotName is the name of the space. No source can have it, because IDs contain no blanks.
const snapshotName = "snapshot repository"

// ConfigureSnapshotInput is the snapshot repository. An empty URL means none.
type ConfigureSnapshotInput struct {
	URL    string `json:"url"`
	Branch string `json:"branch"`
	Token  string `json:"token"`
}

// ConfigureSnapshot creates the space of the snapshot repository if it does not exist, and sets the
// space's remote. Without a URL, it removes the remote. The repository then stays as it is.
func (s *Service) ConfigureSnapshot(ctx context.Context, a Actor, in ConfigureSnapshotInput) (None, error) {
	if err := s.authorize(a, "ConfigureSnapshot"); err != nil {
		return None{}, err
	}
	if a.kind != operator {
		return None{}, fault.New(fault.Forbidden, "Only the operator of this server may do that.")
	}
	exists := s.git.Exists(SnapshotSpace)
	if in.URL == "" {
		if !exists {
			return None{}, nil
		}
		return None{}, s.remotes.Remove(ctx, SnapshotSpace)
	}
	if !exists {
		meta := space.Meta{Author: space.Server(), Message: "Start the snapshot repository", Tool: "sync"}
		if _, err := s.git.Create(ctx, SnapshotSpace, space.ChangeSet{}, meta); err != nil {
			return None{}, err
		}
	}
	if _, err := s.accounts.Space(ctx, SnapshotSpace); fault.CodeOf(err) == fault.NotFound {
		owner, err := s.custodian(ctx)
		if err == nil {
			err = s.accounts.CreateSourceSpace(ctx, a.audit(), owner, SnapshotSpace, snapshotName)
		}
		if err != nil {
			return None{}, err
		}
	} else if err != nil {
		return None{}, err
	}
	r := remotes.SetRequest{Space: SnapshotSpace, URL: in.URL, Branch: in.Branch, Secret: in.Token, Trusted: true}
	if in.Token != "" {
		r.Kind = space.KindToken
	}
	return None{}, s.remotes.Set(ctx, r)
}
