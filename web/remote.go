package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
)

// Remotes are the operations on remotes; *service.Service has them.
type Remotes interface {
	GetRemote(ctx context.Context, a service.Actor, in service.GetRemoteInput) (space.RemoteStatus, error)
	ListRemoteStates(ctx context.Context, a service.Actor, in service.ListRemoteStatesInput) (map[space.SpaceID]space.RemoteState, error)
	SyncRemote(ctx context.Context, a service.Actor, in service.SyncRemoteInput) (service.SpaceStatus, error)
	SetRemote(ctx context.Context, a service.Actor, in service.SetRemoteInput) (service.SpaceStatus, error)
	RemoveRemote(ctx context.Context, a service.Actor, in service.RemoveRemoteInput) (service.None, error)
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

// remoteOf returns the status of a space's remote.
func (s *Site) remoteOf(v *Visit, id space.SpaceID) (RemoteView, error) {
	st, err := s.Remotes.GetRemote(v.R.Context(), v.Actor(), service.GetRemoteInput{Space: service.SpaceRef{ID: id}})
	return s.viewOf(st), err
}

// newRemote is a repository that a person names.
type newRemote struct {
	Space           space.SpaceID
	URL, Branch     string
	Username, Token string
	// AllowSecrets are the fingerprints of findings that the person was shown and does
	// not consider to be secrets.
	AllowSecrets []string `json:"-"`
}

// routeRemote adds how the pushes of a space go.
func (s *Site) routeRemote() {
	s.Handle("GET /spaces/{id}/remote", LimitPage, SignedIn, s.showRemote)
	s.Handle("POST /spaces/{id}/remote", LimitPage, SignedIn, s.setRemote)
	s.Handle("POST /spaces/{id}/remote/sync", LimitPage, SignedIn, s.syncRemote)
	s.Handle("POST /spaces/{id}/remote/remove", LimitPage, SignedIn, s.removeRemote)
}

// remotePage is how a space and its remote stand.
type remotePage struct {
	Space  store.Membership
	Owner  bool
	May    bool
	Action string
	Status RemoteView
	Local  bool
	GitHub bool // it can be connected there
	// Wrong says what is wrong with the connection to GitHub, and Way what to do
	// about it.
	Wrong, Way string
	Refused    []refusedItem
	Secret     bool // something was refused because it looks like a secret
	Form       newRemote
	Kept       keptRemote
	Found      *foundBody   // nil: nothing
	Held       *PendingList // nil: nothing is held for the visitor
	User       string       // the owner's name, for commands
	Said       string       // what was just done
}

type refusedItem struct {
	space.RemoteLocation
	URL, Commit string
}

// PushState is the status of a space's remote for the head of a page; nil if there is
// none to show.
func (s *Site) PushState(v *Visit, id space.SpaceID) *RemoteView {
	if s.Remotes == nil {
		return nil
	}
	st, err := s.remoteOf(v, id)
	if err != nil || st.Remote == nil {
		return nil
	}
	return &st
}

// showRemote is GET /spaces/{id}/remote.
func (s *Site) showRemote(v *Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	return s.remotePage(v, m, newRemote{}, keptRemote{}, nil, Page{})
}

func (s *Site) remotePage(v *Visit, m store.Membership, form newRemote, kept keptRemote, found []service.FoundSecret, p Page) error {
	if s.Remotes == nil {
		return ErrNoPage
	}
	st, err := s.remoteOf(v, m.ID)
	if err != nil {
		return err
	}
	form.Token = "" // it is written, and never shown
	if form.URL == "" && p.Problem == "" && !st.GitHub {
		form.URL, form.Branch, form.Username = st.URL, st.Branch, st.Username
	}
	body := remotePage{
		Space: m, Owner: m.Role == space.Owner, May: m.Role != space.Reader, Action: SpacePath(m.ID, "remote"), Status: st, Local: st.URL == "", GitHub: s.App != nil,
		Form: form, Kept: kept, Said: remoteSaid(v.R.URL.Query().Get("done"), st), User: m.OwnerName,
		Found: foundOf(m.ID, found, len(form.AllowSecrets)),
	}
	for _, r := range st.Locations {
		it := refusedItem{RemoteLocation: r}
		if r.Path != "" {
			it.URL = tools.FileURL("", m.ID, r.Path)
		}
		if r.Commit.Valid() {
			it.Commit = SpacePath(m.ID, "commits/"+string(r.Commit))
		}
		body.Refused = append(body.Refused, it)
		body.Secret = body.Secret || r.Rule != ""
	}
	if st.GitHub && s.App != nil {
		l, ok, err := s.App.Linked(v.R.Context(), m.ID)
		if err != nil {
			return err
		}
		if ok {
			body.Wrong, body.Way = TroubleOf(l)
		}
	}
	if body.Held, err = s.PendingList(v, m); err != nil {
		return err
	}
	p.Title, p.Space, p.Current, p.Styles, p.Body = "Where it is pushed", &m, "remote", []string{"activity.css"}, body
	status := http.StatusOK
	if p.Problem != "" {
		status = http.StatusBadRequest
	}
	return s.Page(v, status, "remote", p)
}

// remoteSaid says what was just done, and nothing of what did not come about: the
// page reports that itself.
func remoteSaid(done string, st RemoteView) string {
	switch {
	case done == "removed" && st.URL == "":
		return "Disconnected. The repository stays as it is."
	case st.URL == "" || st.State == "failed":
		return ""
	case done == "synced" && st.State == "pushed":
		return "Synced. Both sides are the same."
	case done == "synced":
		return "The sync has begun."
	case done == "set":
		return "The repository is connected."
	}
	return ""
}

// syncWait is how long a page waits for a sync, which goes on after it.
const syncWait = 8 * time.Second

// syncRemote is POST /spaces/{id}/remote/sync.
func (s *Site) syncRemote(v *Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	if s.Remotes == nil {
		return ErrNoPage
	}
	if _, err := s.Remotes.SyncRemote(v.R.Context(), v.Actor(), service.SyncRemoteInput{Space: service.SpaceRef{ID: m.ID}, Wait: syncWait}); err != nil {
		return err
	}
	return s.See(v, SpacePath(m.ID, "remote?done=synced"))
}

// setRemote is POST /spaces/{id}/remote.
func (s *Site) setRemote(v *Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	if s.Remotes == nil {
		return ErrNoPage
	}
	form, over, err := s.remoteForm(v, m)
	if err != nil {
		return err
	}
	if over != "" {
		return s.remoteAgain(v, m, form, nil, Page{Problem: over, Field: "remote-token"})
	}
	// Other forms of addresses are the operator's to set.
	if u, err := url.Parse(form.URL); err != nil || u.Scheme != "https" || u.Host == "" {
		return s.remoteAgain(v, m, form, nil, Page{Problem: "Give the address of a git repository that begins with https://.", Field: "remote-url"})
	} else if u.User != nil {
		form.URL = ""
		return s.remoteAgain(v, m, form, nil, Page{Problem: "Leave the user name and the token out of the address. There are fields for them.", Field: "remote-url"})
	}
	set, err := s.Remotes.SetRemote(v.R.Context(), v.Actor(), service.SetRemoteInput{
		Space: service.SpaceRef{ID: m.ID}, URL: form.URL, Branch: form.Branch, Username: form.Username, Token: form.Token,
		AllowSecrets: form.AllowSecrets, MaxSecrets: maxFoundSecrets, Wait: syncWait,
	})
	switch {
	case fault.CodeOf(err) == fault.Invalid:
		field := "remote-url"
		if form.Token == "" && strings.Contains(strings.ToLower(fault.PublicOf(err)), "token") {
			field = "remote-token"
		}
		return s.remoteAgain(v, m, form, nil, Page{Problem: fault.PublicOf(err), Field: field})
	case err != nil:
		return err
	case len(set.Secrets) > 0:
		problem := "Nothing was changed: the space holds what looks like secrets, and the first push would take it along."
		if len(form.AllowSecrets) > 0 {
			problem = "Nothing was changed yet: the space holds more of what looks like secrets."
		}
		return s.remoteAgain(v, m, form, set.Secrets, Page{Problem: problem, Field: "found"})
	}
	return s.See(v, SpacePath(m.ID, "remote?done=set"))
}

// removeRemote is POST /spaces/{id}/remote/remove.
func (s *Site) removeRemote(v *Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	if s.Remotes == nil {
		return ErrNoPage
	}
	if _, err := s.Remotes.RemoveRemote(v.R.Context(), v.Actor(), service.RemoveRemoteInput{Space: service.SpaceRef{ID: m.ID}}); err != nil {
		return err
	}
	return s.See(v, SpacePath(m.ID, "remote?done=removed"))
}
