package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
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
	// maxGitHubFlows is how many visits to GitHub a browser may have open at once.
	maxGitHubFlows = 8
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
	return s.takeSession(v, kind, all[0])
}

// takeSession takes a flow of this session; another's stays as it is.
func (s *Server) takeSession(v *visit, kind, secret string) (f githubFlow, ok bool, err error) {
	if f, ok, err = s.openFlow(v, kind, secret, s.o.Accounts.SeeFlow); err != nil || !ok {
		return f, false, err
	}
	return s.openFlow(v, kind, secret, s.o.Accounts.TakeFlow)
}

func (s *Server) openFlow(v *visit, kind, secret string, open func(ctx context.Context, kind, secret string) ([]byte, error)) (f githubFlow, ok bool, err error) {
	if _, _, err := auth.ParseSecret(auth.KindFlow, secret); err != nil {
		return f, false, nil
	}
	data, err := open(v.r.Context(), kind, secret)
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

// flowName is the name of the cookie of one flow. It follows from what a request
// must bring to go on with it, so that one that brings something else, such as a link
// on another site, finds no flow to use up, and flows beside each other stay apart.
func flowName(kind, of string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + of))
	return githubCookie + "-" + hex.EncodeToString(sum[:8])
}

// keepGitHub remembers a flow for this browser, whose secret is in a cookie; of is
// the state of a visit to GitHub, and the space of what was found there.
func (s *Server) keepGitHub(v *visit, kind, of string, f githubFlow) error {
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
	name := flowName(kind, of)
	s.boundGitHub(v, name)
	s.setCookie(v.w, name, secret.Reveal(), f.Ends)
	return nil
}

// boundGitHub has the browser forget its oldest flows, which it names first (RFC
// 6265 section 5.4), where another one would be too many.
func (s *Server) boundGitHub(v *visit, but string) {
	var names []string
	for _, c := range v.r.Cookies() {
		if name := strings.TrimPrefix(c.Name, s.cookieName("")); strings.HasPrefix(name, githubCookie+"-") && name != but && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names[:max(0, len(names)+1-maxGitHubFlows)] {
		s.setCookie(v.w, name, "", time.Time{})
	}
}

// takeGitHub returns a flow of this browser, once; ok is false where there is none.
func (s *Server) takeGitHub(v *visit, kind, of string) (f githubFlow, ok bool, err error) {
	name := flowName(kind, of)
	secret := s.cookie(v.r, name, auth.KindFlow)
	if secret == "" {
		return f, false, nil
	}
	f, ok, err = s.takeSession(v, kind, secret)
	if err == nil {
		s.setCookie(v.w, name, "", time.Time{})
	}
	return f, ok, err
}

// seeGitHub is takeGitHub for a look that leaves the flow there.
func (s *Server) seeGitHub(v *visit, kind, of string) (f githubFlow, ok bool, err error) {
	secret := s.cookie(v.r, flowName(kind, of), auth.KindFlow)
	if secret == "" {
		return f, false, nil
	}
	return s.openFlow(v, kind, secret, s.o.Accounts.SeeFlow)
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
