// Package remote serves the pages of the git remotes of spaces, and of files that could
// not be committed.
package remote

import (
	"cmp"
	"embed"
	"errors"
	"net/http"
	"net/url"
	"time"

	"satchel/auth"
	"satchel/internal/egress"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
	"satchel/web"
)

//go:embed templates
var templates embed.FS

type pages struct{ *web.Site }

// Register adds the pages to a site.
func Register(site *web.Site) error {
	s := &pages{site}
	s.HandleSettings(web.SettingsTab{Order: 3, Path: "/remote", Name: "Git remote"}, s.showRemote)
	s.Handle("POST /spaces/{id}/remote", web.LimitPage, web.SignedIn, s.setRemote)
	s.Handle("POST /spaces/{id}/remote/sync", web.LimitPage, web.SignedIn, s.syncRemote)
	s.Handle("POST /spaces/{id}/remote/remove", web.LimitPage, web.SignedIn, s.removeRemote)
	s.Handle("POST /spaces/{id}/held/allow", web.LimitPage, web.SignedIn, s.allowSecrets)
	s.Handle("POST /spaces/{id}/held/discard", web.LimitPage, web.SignedIn, s.discardPending)
	return s.AddTemplates(templates)
}

type newRemote struct {
	Space           space.SpaceID
	URL, Branch     string
	Username, Token string
	// AllowSecrets are the fingerprints of the listed findings that the owner does not
	// consider to be secrets.
	AllowSecrets []string `json:"-"`
}

type remotePage struct {
	Space  service.View
	Owner  bool
	May    bool // the visitor may write to the space
	Action string
	Status web.RemoteView
	Local  bool // the space has no remote
	// Wrong describes a problem with the connection to GitHub. Way is the solution of this
	// problem, or of the failed push.
	Wrong, Way string
	NewToken   bool // the owner can solve the problem with a new token
	Refused    []refusedItem
	Secret     bool // the remote refused a text that looks like a secret
	Form       newRemote
	Kept       keptRemote
	Found      *foundBody   // nil if nothing was found
	Held       *pendingList // nil if there are no pending files
	User       string       // the owner's name, for commands
	Soon       bool         // the next attempt starts within a minute
	Synced     bool         // the confirmation says that a sync has just ended
}

type refusedItem struct {
	space.RemoteLocation
	URL, Commit string
}

// showRemote handles GET /spaces/{id}/remote.
func (s *pages) showRemote(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	return s.remotePage(v, m, newRemote{}, keptRemote{}, nil, web.Page{})
}

func (s *pages) remotePage(v *web.Visit, m service.View, form newRemote, kept keptRemote, found []service.FoundSecret, p web.Page) error {
	st, err := s.RemoteOf(v, m.ID)
	if err != nil {
		return err
	}
	form.Token = "" // a page never shows the token
	if form.URL == "" && p.Problem == "" && !st.GitHub {
		form.URL, form.Branch, form.Username = st.URL, st.Branch, st.Username
	}
	body := remotePage{
		Space: m, Owner: m.Role == space.Owner, May: m.Role != space.Reader, Action: web.SpacePath(m.ID, "remote"), Status: st, Local: st.URL == "",
		Form: form, Kept: kept, User: m.OwnerName,
		Found: foundOf(m.ID, found, len(form.AllowSecrets)),
	}
	if st.Problem != "" {
		body.Way = st.Do
		if body.Owner && !st.GitHub {
			body.Way = st.DoBelow
		}
	}
	body.NewToken = body.Owner && !st.GitHub && (st.Problem == "auth" || st.Problem == "no_token") && st.Remote != nil && st.Remote.Kind != space.KindSSH
	body.Soon = !st.NextTry.IsZero() && st.NextTry.Before(s.Now().Add(time.Minute))
	for _, r := range st.Locations {
		it := refusedItem{RemoteLocation: r}
		if r.Path != "" {
			it.URL = tools.FileURL("", m.ID, r.Path)
		}
		if r.Commit.Valid() {
			it.Commit = web.SpacePath(m.ID, "commits/"+string(r.Commit))
		}
		body.Refused = append(body.Refused, it)
		body.Secret = body.Secret || r.Rule != ""
	}
	if st.GitHub {
		l, ok, err := s.App.Linked(v.R.Context(), m.ID)
		if err != nil {
			return err
		}
		if ok {
			if what, way := web.TroubleOf(l, auth.AtGitHubTab); what != "" {
				body.Wrong, body.Way = what, way
			}
		}
	}
	if body.Held, err = s.pendingList(v, m); err != nil {
		return err
	}
	if p.Problem == "" {
		done := v.R.URL.Query().Get("done")
		p.Done = remoteSaid(done, st, body.Held != nil && body.Held.Count != 0)
		body.Synced = done == "synced" && st.State == space.RemotePushed
	}
	p.Title, p.Label, p.Space, p.Current, p.Styles, p.Body = "Git remote", m.Name, &m, "remote", []string{"activity.css", "github.css"}, body
	status := http.StatusOK
	if p.Problem != "" {
		status = http.StatusBadRequest
	}
	return s.Page(v, status, "remote", p)
}

// remoteSaid returns the message that confirms what the visitor just did. It returns "" if
// the action failed, because the page reports the failure itself.
func remoteSaid(done string, st web.RemoteView, unsaved bool) string {
	switch {
	case done == "removed" && st.URL == "":
		return "Disconnected. The repository stays as it is."
	case st.URL == "" || st.State == "failed":
		return ""
	case done == "synced" && st.State == "pushed" && unsaved:
		return "Synced. Everything that is saved is pushed."
	case done == "synced" && st.State == "pushed":
		return "Synced. Everything is pushed."
	case done == "synced":
		return "The sync has begun."
	case done == "set":
		return "The repository was connected."
	}
	return ""
}

// syncWait is how long a page waits for a sync. The sync continues after that.
const syncWait = 8 * time.Second

// syncRemote handles POST /spaces/{id}/remote/sync.
func (s *pages) syncRemote(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	if _, err := s.Service.SyncRemote(v.R.Context(), v.Actor(), service.SyncRemoteInput{Space: service.SpaceRef{ID: m.ID}, Wait: syncWait}); err != nil {
		return err
	}
	return s.See(v, web.SpacePath(m.ID, "remote?done=synced"))
}

// setRemote handles POST /spaces/{id}/remote.
func (s *pages) setRemote(v *web.Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	form, over, err := s.remoteForm(v, m)
	if err != nil {
		return err
	}
	if over != "" {
		return s.remoteAgain(v, m, form, nil, web.Page{Problem: over, Field: "remote-token"})
	}
	// Only the operator can set an address that does not begin with https://.
	u, err := url.Parse(form.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return s.remoteAgain(v, m, form, nil, web.Page{Problem: "Give the address of a git repository that begins with https://.", Field: "remote-url"})
	} else if u.User != nil {
		form.URL = ""
		return s.remoteAgain(v, m, form, nil, web.Page{Problem: "Leave the user name and the token out of the address. There are fields for them.", Field: "remote-url"})
	}
	set, err := s.Service.SetRemote(v.R.Context(), v.Actor(), service.SetRemoteInput{
		Space: service.SpaceRef{ID: m.ID}, URL: form.URL, Branch: form.Branch, Username: form.Username, Token: form.Token,
		AllowSecrets: form.AllowSecrets, MaxSecrets: maxFoundSecrets, Wait: syncWait,
	})
	switch {
	case fault.CodeOf(err) == fault.Invalid:
		problem := fault.PublicOf(err)
		if blocked, ok := errors.AsType[*egress.BlockedError](err); ok {
			problem = cmp.Or(blocked.Host, u.Hostname()) + " is not a public address. Only the operator of this server can connect such addresses, with “satchel space remote set”."
		}
		return s.remoteAgain(v, m, form, nil, web.Page{Problem: problem, Field: "remote-url"})
	case err != nil:
		return err
	case len(set.Secrets) > 0:
		problem := "Nothing was changed: the space has possible secrets, and the first push would publish them."
		if len(form.AllowSecrets) > 0 {
			problem = "Nothing was changed yet: the space has more possible secrets."
		}
		return s.remoteAgain(v, m, form, set.Secrets, web.Page{Problem: problem})
	}
	return s.See(v, web.SpacePath(m.ID, "remote?done=set"))
}

// removeRemote handles POST /spaces/{id}/remote/remove.
func (s *pages) removeRemote(v *web.Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	if _, err := s.Service.RemoveRemote(v.R.Context(), v.Actor(), service.RemoveRemoteInput{Space: service.SpaceRef{ID: m.ID}}); err != nil {
		return err
	}
	return s.See(v, web.SpacePath(m.ID, "remote?done=removed"))
}
