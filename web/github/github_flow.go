package github

import (
	"slices"
	"time"

	"satchel/auth/github/app"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
)

// The kinds of flows with the GitHub App. They are good in the session that began them.
const (
	flowManifest web.FlowKind = "github manifest"
	flowInstall  web.FlowKind = "github install"
	flowConnect  web.FlowKind = "github connect"
	flowFound    web.FlowKind = "github found" // of a space
)

// hintLifetime is how long the code of a manifest is good (GitHub's documentation),
// and how long somebody may look round before they install.
const hintLifetime = time.Hour

// githubFlow is what the server remembers while somebody is at GitHub. It is good for
// its space.
type githubFlow struct {
	web.Flow
	Space space.SpaceID `json:"space,omitempty"`
	Data  []byte        `json:"data,omitempty"` // of GitHubApp.Begin

	Create *app.NewRepository `json:"create,omitempty"`
	Found  *app.Found         `json:"found,omitempty"`
}

// hint keeps a flow whose secret is itself the state: it goes to GitHub and back,
// and tells alone that this session asked.
func (s *pages) hint(v *web.Visit, kind web.FlowKind, id space.SpaceID) (state string, err error) {
	secret, err := s.PutFlow(v, kind, "", hintLifetime, &githubFlow{Space: id})
	return secret.Reveal(), err
}

// takeHint uses the state of a request up. It is good once, and in the session
// that asked; ok is false if it is none. A duplicated one is none either.
func (s *pages) takeHint(v *web.Visit, kind web.FlowKind) (f githubFlow, ok bool, err error) {
	state, ok := web.StateIn(v.R)
	if !ok {
		return f, false, nil
	}
	ok, err = s.TakeFlowOf(v, kind, "", state, &f)
	return f, ok, err
}

// connectable is owned for the pages of a flow: the space whose repository it is
// about, as long as the visitor owns it.
func (s *pages) connectable(v *web.Visit, id space.SpaceID) (store.Membership, error) {
	all, err := s.Spaces(v)
	if err != nil {
		return store.Membership{}, err
	}
	i := slices.IndexFunc(all, func(m store.Membership) bool { return m.ID == id })
	switch {
	case i < 0:
		return store.Membership{}, web.ErrGone
	case all[i].Role != space.Owner:
		return store.Membership{}, fault.New(fault.Forbidden, "Only who owns the space %s may connect a repository to it.", all[i].Name)
	}
	return all[i], nil
}
