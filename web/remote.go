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
func (s *Server) routeRemote(add adder) {
	add("GET /spaces/{id}/remote", LimitPage, signedIn, s.showRemote)
	add("POST /spaces/{id}/remote", LimitPage, signedIn, s.setRemote)
	add("POST /spaces/{id}/remote/sync", LimitPage, signedIn, s.syncRemote)
	add("POST /spaces/{id}/remote/remove", LimitPage, signedIn, s.removeRemote)
	s.routeHeld(add)
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
func (s *Server) pushState(ctx context.Context, id space.SpaceID) *RemoteStatus {
	if s.o.Remotes == nil || s.o.Remotes.State(id) == "local" {
		return nil
	}
	st, err := s.o.Remotes.Status(ctx, id)
	if err != nil {
		return nil
	}
	return &st
}

// showRemote is GET /spaces/{id}/remote.
func (s *Server) showRemote(v *visit) error {
	m, err := s.membership(v)
	if err != nil {
		return err
	}
	return s.remotePage(v, m, NewRemote{}, keptRemote{}, nil, page{})
}

func (s *Server) remotePage(v *visit, m store.Membership, form NewRemote, kept keptRemote, found []FoundSecret, p page) error {
	if s.o.Remotes == nil {
		return errNoPage
	}
	st, err := s.o.Remotes.Status(v.r.Context(), m.ID)
	if err != nil {
		return err
	}
	form.Token = "" // it is written, and never shown
	if form.URL == "" && p.Problem == "" && !st.GitHub {
		form.URL, form.Branch, form.Username = st.URL, st.Branch, st.Username
	}
	body := remotePage{
		Space: m, Owner: m.Role == space.Owner, May: m.Role != space.Reader, Action: inSpace(m.ID, "remote"), Status: st, Local: st.URL == "", GitHub: s.o.App != nil,
		Form: form, Kept: kept, Said: remoteSaid(v.r.URL.Query().Get("done"), st), User: m.OwnerName,
		Found: foundOf(m.ID, found, len(form.AllowSecrets)),
	}
	for _, r := range st.Refused {
		it := refusedItem{RefusedPlace: r}
		if r.Path != "" {
			it.URL = tools.FileURL("", m.ID, r.Path)
		}
		if space.CommitID(r.Commit).Valid() {
			it.Commit = inSpace(m.ID, "commits/"+r.Commit)
		}
		body.Refused = append(body.Refused, it)
		body.Secret = body.Secret || r.Rule != ""
	}
	if st.GitHub && s.o.App != nil {
		l, ok, err := s.o.App.Linked(v.r.Context(), m.ID)
		if err != nil {
			return err
		}
		if ok {
			body.Wrong, body.Way = troubleOf(l)
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
	return s.page(v, status, "remote", p)
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
func (s *Server) syncRemote(v *visit) error {
	m, err := s.writable(v)
	if err != nil {
		return err
	}
	if s.o.Remotes == nil {
		return errNoPage
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), syncWait)
	defer cancel()
	if err := s.o.Remotes.Sync(ctx, m.ID); err != nil && fault.CodeOf(err) != fault.Canceled {
		return err
	}
	return s.see(v, inSpace(m.ID, "remote?done=synced"))
}

// setRemote is POST /spaces/{id}/remote.
func (s *Server) setRemote(v *visit) error {
	m, err := s.owned(v)
	if err != nil {
		return err
	}
	if s.o.Remotes == nil {
		return errNoPage
	}
	r := v.r
	form, over, err := s.remoteForm(v, m)
	if err != nil {
		return err
	}
	if over != "" {
		return s.remoteAgain(v, m, form, nil, page{Problem: over, Field: "remote-token"})
	}
	// Other forms of addresses are the operator's to set.
	if u, err := url.Parse(form.URL); err != nil || u.Scheme != "https" || u.Host == "" {
		return s.remoteAgain(v, m, form, nil, page{Problem: "Give the address of a git repository that begins with https://.", Field: "remote-url"})
	} else if u.User != nil {
		form.URL = ""
		return s.remoteAgain(v, m, form, nil, page{Problem: "Leave the user name and the token out of the address. There are fields for them.", Field: "remote-url"})
	}
	found, err := s.o.Remotes.Set(r.Context(), v.user.ID, form)
	switch {
	case fault.CodeOf(err) == fault.Invalid:
		field := "remote-url"
		if form.Token == "" && strings.Contains(strings.ToLower(fault.PublicOf(err)), "token") {
			field = "remote-token"
		}
		return s.remoteAgain(v, m, form, nil, page{Problem: fault.PublicOf(err), Field: field})
	case err != nil:
		return err
	case len(found) > 0:
		problem := "Nothing was changed: the space holds what looks like secrets, and the first push would take it along."
		if len(form.AllowSecrets) > 0 {
			problem = "Nothing was changed yet: the space holds more of what looks like secrets."
		}
		return s.remoteAgain(v, m, form, found, page{Problem: problem, Field: "found"})
	}
	ctx, cancel := context.WithTimeout(r.Context(), syncWait)
	defer cancel()
	if err := s.o.Remotes.Sync(ctx, m.ID); err != nil && fault.CodeOf(err) != fault.Canceled {
		s.log.WarnContext(r.Context(), "the first sync of a remote", "space", m.ID, "err", err)
	}
	return s.see(v, inSpace(m.ID, "remote?done=set"))
}

// removeRemote is POST /spaces/{id}/remote/remove.
func (s *Server) removeRemote(v *visit) error {
	m, err := s.owned(v)
	if err != nil {
		return err
	}
	if s.o.Remotes == nil {
		return errNoPage
	}
	if err := s.o.Remotes.Remove(v.r.Context(), v.user.ID, m.ID); err != nil {
		return err
	}
	return s.see(v, inSpace(m.ID, "remote?done=removed"))
}

// urlQuery encodes names and values.
func urlQuery(pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q.Encode()
}
