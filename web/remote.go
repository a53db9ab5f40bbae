package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools"
)

// Remotes keep spaces in step with repositories elsewhere. Who calls it has
// checked what the person may do. Errors are faults.
type Remotes interface {
	// Status reports how a space and its remote stand; it never asks the remote.
	Status(ctx context.Context, id space.SpaceID) (RemoteStatus, error)
	// State is the short form, from memory alone: "local", "pushed", "queued",
	// "syncing" or "failed".
	State(id space.SpaceID) string
	// Sync brings both in step, and returns when that is done or ctx ended; the
	// sync goes on then.
	Sync(ctx context.Context, id space.SpaceID) error
	// Set gives the space another remote. Where found is not empty nothing was
	// changed: the space holds what looks like secrets beside those that r allows,
	// which the first push would take along; it has more than MaxFoundSecrets where
	// there are more, and not all of them then. by is for the
	// audit log.
	Set(ctx context.Context, by space.UserID, r NewRemote) (found []FoundSecret, err error)
	Remove(ctx context.Context, by space.UserID, id space.SpaceID) error
}

// RemoteStatus is how a space and its remote stand.
type RemoteStatus struct {
	// State is "local", "pushed", "queued", "syncing" or "failed".
	State string
	// URL is empty if there is no remote; GitHub reports that the GitHub App
	// connects it, and Token that a token is stored.
	URL, Branch, Username string
	GitHub, Token         bool
	// Detail and Remedy are sentences for people, where the last sync failed.
	Problem, Detail, Remedy      string
	Unpushed                     int
	LastCheck, LastSync, NextTry time.Time
	Attempts                     int
	// Refused are places that the remote refused.
	Refused []RefusedPlace
	Notes   []RemoteNote
}

// RefusedPlace is a commit or a file that a remote refused.
type RefusedPlace struct {
	Commit string
	Path   string
	Line   int
	Rule   string
}

// RemoteNote is something that happened with the remote.
type RemoteNote struct {
	At   time.Time
	Text string
}

// NewRemote is a repository that a person names.
type NewRemote struct {
	Space           space.SpaceID
	URL, Branch     string
	Username, Token string
	// AllowSecrets are the fingerprints of what the person was shown and said is no secret.
	AllowSecrets []string `json:"-"`
}

// routeRemote adds how the pushes of a space go.
func (s *Site) routeRemote() {
	s.Handle("GET /spaces/{id}/remote", LimitPage, SignedIn, s.showRemote)
	s.Handle("POST /spaces/{id}/remote", LimitPage, SignedIn, s.setRemote)
	s.Handle("POST /spaces/{id}/remote/sync", LimitPage, SignedIn, s.syncRemote)
	s.Handle("POST /spaces/{id}/remote/remove", LimitPage, SignedIn, s.removeRemote)
	s.routeHeld()
}

// remotePage is how a space and its remote stand.
type remotePage struct {
	Space  store.Membership
	Owner  bool
	May    bool
	Action string
	Status RemoteStatus
	Local  bool
	GitHub bool // it can be connected there
	// Wrong says what is wrong with the connection to GitHub, and Way what to do
	// about it.
	Wrong, Way string
	Refused    []refusedItem
	Secret     bool // something was refused because it looks like a secret
	Form       NewRemote
	Kept       keptRemote
	Found      *foundBody // nil: nothing
	Held       *heldBody  // nil: nothing is held for the visitor
	User       string     // the owner's name, for commands
	Said       string     // what was just done
}

type refusedItem struct {
	RefusedPlace
	URL, Commit string
}

// pushState is the state of a space's remote for the head of a page; nil if
// there is none to tell of.
func (s *Site) pushState(ctx context.Context, id space.SpaceID) *RemoteStatus {
	if s.Remotes == nil || s.Remotes.State(id) == "local" {
		return nil
	}
	st, err := s.Remotes.Status(ctx, id)
	if err != nil {
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
	return s.remotePage(v, m, NewRemote{}, keptRemote{}, nil, Page{})
}

func (s *Site) remotePage(v *Visit, m store.Membership, form NewRemote, kept keptRemote, found []FoundSecret, p Page) error {
	if s.Remotes == nil {
		return ErrNoPage
	}
	st, err := s.Remotes.Status(v.R.Context(), m.ID)
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
	for _, r := range st.Refused {
		it := refusedItem{RefusedPlace: r}
		if r.Path != "" {
			it.URL = tools.FileURL("", m.ID, r.Path)
		}
		if space.CommitID(r.Commit).Valid() {
			it.Commit = SpacePath(m.ID, "commits/"+r.Commit)
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
	if body.Held, err = s.heldOf(v, m); err != nil {
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
func remoteSaid(done string, st RemoteStatus) string {
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
	ctx, cancel := context.WithTimeout(v.R.Context(), syncWait)
	defer cancel()
	if err := s.Remotes.Sync(ctx, m.ID); err != nil && fault.CodeOf(err) != fault.Canceled {
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
	r := v.R
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
	found, err := s.Remotes.Set(r.Context(), v.User.ID, form)
	switch {
	case fault.CodeOf(err) == fault.Invalid:
		field := "remote-url"
		if form.Token == "" && strings.Contains(strings.ToLower(fault.PublicOf(err)), "token") {
			field = "remote-token"
		}
		return s.remoteAgain(v, m, form, nil, Page{Problem: fault.PublicOf(err), Field: field})
	case err != nil:
		return err
	case len(found) > 0:
		problem := "Nothing was changed: the space holds what looks like secrets, and the first push would take it along."
		if len(form.AllowSecrets) > 0 {
			problem = "Nothing was changed yet: the space holds more of what looks like secrets."
		}
		return s.remoteAgain(v, m, form, found, Page{Problem: problem, Field: "found"})
	}
	ctx, cancel := context.WithTimeout(r.Context(), syncWait)
	defer cancel()
	if err := s.Remotes.Sync(ctx, m.ID); err != nil && fault.CodeOf(err) != fault.Canceled {
		s.Logger.WarnContext(r.Context(), "the first sync of a remote", "space", m.ID, "err", err)
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
	if err := s.Remotes.Remove(v.R.Context(), v.User.ID, m.ID); err != nil {
		return err
	}
	return s.See(v, SpacePath(m.ID, "remote?done=removed"))
}
