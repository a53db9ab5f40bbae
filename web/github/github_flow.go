package github

import (
	"slices"
	"time"

	"satchel/auth/github/app"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// The kinds of flows with the GitHub App. A flow is valid only in the session that began it.
const (
	flowManifest web.FlowKind = "github manifest"
	flowInstall  web.FlowKind = "github install"
	flowConnect  web.FlowKind = "github connect"
	flowFound    web.FlowKind = "github found" // the repositories to choose from, for one space
)

// hintLifetime is how long GitHub accepts the code of a manifest, according to GitHub's
// documentation. It also limits how long a person may take to install the App.
const hintLifetime = time.Hour

// githubFlow is the data that the server keeps while a person is at GitHub. It is valid
// only for its space.
type githubFlow struct {
	web.Flow
	Space space.SpaceID `json:"space,omitempty"`
	Data  []byte        `json:"data,omitempty"` // from [app.Client.Begin]

	Create *app.NewRepository `json:"create,omitempty"`
	Found  *app.Found         `json:"found,omitempty"`
}

// hint stores a flow, and returns the flow's secret as the state. GitHub sends the state back. Only
// the state proves that this session began the visit to GitHub.
func (s *pages) hint(v *web.Visit, kind web.FlowKind, id space.SpaceID) (state string, err error) {
	secret, err := s.PutFlow(v, kind, "", hintLifetime, &githubFlow{Space: id})
	return secret.Reveal(), err
}

// takeHint uses up the state of a request. A state is valid once, in the session that
// created it. ok is false if the state is missing, duplicated or invalid.
func (s *pages) takeHint(v *web.Visit, kind web.FlowKind) (f githubFlow, ok bool, err error) {
	state, ok := web.StateIn(v.R)
	if !ok {
		return f, false, nil
	}
	ok, err = s.TakeFlowOf(v, kind, "", state, &f)
	return f, ok, err
}

// connectable returns the space of a flow if the visitor owns it. The error is a
// fault.Forbidden for a member who does not own the space.
func (s *pages) connectable(v *web.Visit, id space.SpaceID) (service.View, error) {
	all, err := s.Spaces(v)
	if err != nil {
		return service.View{}, err
	}
	i := slices.IndexFunc(all, func(m service.View) bool { return m.ID == id })
	switch {
	case i < 0:
		return service.View{}, web.ErrGone
	case all[i].Role != space.Owner:
		return service.View{}, fault.New(fault.Forbidden, "Only the owner of the space %s can connect a repository to it.", all[i].Name)
	}
	return all[i], nil
}
