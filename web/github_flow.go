package web

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// The kinds of flows with the GitHub App.
const (
	flowManifest = "github manifest"
	flowInstall  = "github install"
	flowConnect  = "github connect"
	flowFound    = "github found"
)

const (
	githubCookie = "satchel-github"
	// hintLifetime is how long the code of a manifest is good (GitHub's
	// documentation), and how long somebody may look round before they install.
	hintLifetime = time.Hour
)

// githubFlow is what the server remembers while somebody is at GitHub. It is good
// in the session that began it, and for its space.
type githubFlow struct {
	Session string        `json:"session"`
	Space   space.SpaceID `json:"space,omitempty"`
	State   []byte        `json:"state,omitempty"` // SHA-256 of what GitHub returns
	Data    []byte        `json:"data,omitempty"`  // of GitHubApp.Begin

	Create *app.NewRepository `json:"create,omitempty"`
	Found  *app.Found         `json:"found,omitempty"`
	Ends   time.Time          `json:"ends"`
}

// hint keeps a flow whose secret is itself the state: it goes to GitHub and back,
// and tells alone that this session asked.
func (s *Server) hint(v *visit, kind string, id space.SpaceID) (state string, err error) {
	data, err := json.Marshal(githubFlow{Session: v.session.ID, Space: id})
	if err != nil {
		return "", fmt.Errorf("flow: %w", err)
	}
	secret, err := s.o.Accounts.PutFlow(v.r.Context(), kind, data, hintLifetime)
	return secret.Reveal(), err
}

// takeHint uses the state of a request up. It is good once, and in the session
// that asked; ok is false where it is none. A duplicated one is none either.
func (s *Server) takeHint(v *visit, kind string) (f githubFlow, ok bool, err error) {
	all := v.r.URL.Query()["state"]
	if !v.in || len(all) != 1 {
		return githubFlow{}, false, nil
	}
	return s.openFlow(v, kind, all[0])
}

func (s *Server) openFlow(v *visit, kind, secret string) (f githubFlow, ok bool, err error) {
	if _, _, err := auth.ParseSecret(auth.KindFlow, secret); err != nil {
		return f, false, nil
	}
	data, err := s.o.Accounts.TakeFlow(v.r.Context(), kind, secret)
	switch fault.CodeOf(err) {
	case "":
	case fault.NotFound, fault.Unauthenticated, fault.Invalid:
		return f, false, nil
	default:
		return f, false, err
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, false, fmt.Errorf("flow: %w", err)
	}
	return f, v.in && f.Session == v.session.ID, nil
}

// keepGitHub remembers a flow for this browser, whose secret is in a cookie.
func (s *Server) keepGitHub(v *visit, kind string, f githubFlow) error {
	if f.Ends.IsZero() {
		f.Ends = s.now().Add(flowLifetime)
	}
	data, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("flow: %w", err)
	}
	secret, err := s.o.Accounts.PutFlow(v.r.Context(), kind, data, f.Ends.Sub(s.now()))
	if err != nil {
		return err
	}
	s.setCookie(v.w, githubCookie, secret.Reveal(), f.Ends)
	return nil
}

// takeGitHub returns this browser's flow, once; ok is false where there is none.
func (s *Server) takeGitHub(v *visit, kind string) (f githubFlow, ok bool, err error) {
	secret := s.cookie(v.r, githubCookie, auth.KindFlow)
	if secret == "" {
		return f, false, nil
	}
	s.setCookie(v.w, githubCookie, "", time.Time{})
	return s.openFlow(v, kind, secret)
}

// flowState tells whether a request brings the state of the flow, once.
func flowState(r *http.Request, f githubFlow) bool {
	all := r.URL.Query()["state"]
	return len(all) == 1 && all[0] != "" && subtle.ConstantTimeCompare(hashState(all[0]), f.State) == 1
}

// connectable is owned for the pages of a flow: the space whose repository it is
// about, as long as the visitor owns it.
func (s *Server) connectable(v *visit, id space.SpaceID) (store.Membership, error) {
	all, err := s.spacesOf(v)
	if err != nil {
		return store.Membership{}, err
	}
	i := slices.IndexFunc(all, func(m store.Membership) bool { return m.ID == id })
	switch {
	case i < 0:
		return store.Membership{}, errGone
	case all[i].Role != space.Owner:
		return store.Membership{}, fault.New(fault.Forbidden, "Only who owns the space %s may connect a repository to it.", all[i].Name)
	}
	return all[i], nil
}
