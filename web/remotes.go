package web

import (
	"context"
	"time"

	"satchel/internal/service"
	"satchel/internal/space"
)

// Remotes are the operations on remotes and imports; *service.Service has them.
type Remotes interface {
	GetRemote(ctx context.Context, a service.Actor, in service.GetRemoteInput) (space.RemoteStatus, error)
	ListRemoteStates(ctx context.Context, a service.Actor, in service.ListRemoteStatesInput) (map[space.SpaceID]space.RemoteState, error)
	SyncRemote(ctx context.Context, a service.Actor, in service.SyncRemoteInput) (service.SpaceStatus, error)
	SetRemote(ctx context.Context, a service.Actor, in service.SetRemoteInput) (service.SpaceStatus, error)
	RemoveRemote(ctx context.Context, a service.Actor, in service.RemoveRemoteInput) (service.None, error)
	FetchRemote(ctx context.Context, a service.Actor, in service.FetchRemoteInput) (service.None, error)
	StartImport(ctx context.Context, a service.Actor, in service.StartImportInput) (service.None, error)
	GetImport(ctx context.Context, a service.Actor, in service.GetImportInput) (*service.ImportState, error)
}

// RemoteView is the status of a remote as templates show it.
type RemoteView struct {
	space.RemoteStatus
	// URL is empty if there is no remote. GitHub reports that the GitHub App connects
	// it, and Token that a token is stored.
	URL, Branch, Username string
	GitHub, Token         bool
	// Every is how often the remote is checked while the space is in use; 0 if only its
	// use causes a check. Told reports that the remote announces pushes itself.
	Every time.Duration
	Told  bool
}

func (s *Site) viewOf(st space.RemoteStatus) RemoteView {
	out := RemoteView{RemoteStatus: st, Every: max(0, s.PollEvery)}
	if r := st.Remote; r != nil {
		out.URL, out.Branch, out.Username, out.GitHub, out.Token = r.URL, r.Branch, r.Username, r.Kind == space.KindGitHub, r.Kind == space.KindToken
		out.Told = s.Webhooks && out.GitHub
		if !r.Chosen {
			out.Branch = ""
		}
	}
	return out
}

// RemoteOf returns the status of a space's remote.
func (s *Site) RemoteOf(v *Visit, id space.SpaceID) (RemoteView, error) {
	st, err := s.Remotes.GetRemote(v.R.Context(), v.Actor(), service.GetRemoteInput{Space: service.SpaceRef{ID: id}})
	return s.viewOf(st), err
}
