package web

import (
	"time"

	"satchel/internal/service"
	"satchel/internal/space"
)

// RemoteView is the status of a remote as templates show it.
type RemoteView struct {
	space.RemoteStatus
	// URL is empty if there is no remote. GitHub reports that the GitHub App connects the remote.
	// Token reports that a token for the remote is stored.
	URL, Branch, Username string
	GitHub, Token         bool
	// Every is how often the remote of a recently used space is checked; 0 if it is checked
	// only on use. Told reports that the remote announces pushes.
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
	st, err := s.Service.GetRemote(v.R.Context(), v.Actor(), service.GetRemoteInput{Space: service.SpaceRef{ID: id}})
	return s.viewOf(st), err
}
