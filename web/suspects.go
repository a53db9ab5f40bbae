package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/internal/space"
	"satchel/tools"
)

// Suspected is what may be passwords in what a space holds now: places, and no
// values. It is for warnings alone.
type Suspected struct {
	Places []SuspectPlace
	More   int
	// Partly tells that not all files were looked at: Looked of Files, which is 0 where
	// they could not be listed.
	Partly        bool
	Looked, Files int
}

// asks tells whether a person is asked before the space is sent anywhere: who writes
// to a space decides how much there is to look at, so that what was not looked at
// counts like what was found.
func (s Suspected) asks() bool { return len(s.Places) > 0 || s.Partly }

// SuspectPlace is a line that may have a password.
type SuspectPlace struct {
	Path space.Path
	Line int
}

// FindSuspects looks through what a space holds now, for a second at most. What it
// found stands beside an error too.
type FindSuspects func(ctx context.Context, id space.SpaceID) (Suspected, error)

// suspectWait bounds a look that does not end by itself.
const suspectWait = 3 * time.Second

// flowRemote is of a remote that its owner was warned about and has not confirmed.
const flowRemote flowKind = "remote"

// remoteFlow is what the owner gave; the token in it is sealed with a secret that their
// browser alone has.
type remoteFlow struct {
	flow
	Remote NewRemote `json:"remote"`
	// Sure tells that they were warned of this repository and went on.
	Sure bool `json:"sure,omitempty"`
}

// What flows of flowRemote are of, beside the space: what the owner is asked about, and
// what a form that comes back need not be given again.
const (
	remoteAsked = " asked "
	remoteKept  = " kept "
)

// suspectsPage warns before a space is sent to where others may read it.
type suspectsPage struct {
	Space  store.Membership
	Where  string // it is sent
	Public bool   // everybody can read it there
	Action string
	Back   string      // where a way back leads; empty where Action goes back, too
	Values []formValue // to go on with
	Places []suspectItem
	Suspected
}

type formValue struct{ Name, Value string }

type suspectItem struct {
	SuspectPlace
	URL string
}

// suspected looks for what may be passwords. What goes wrong with it leaves something
// that was not looked at, and stops nobody who was told of that.
func (s *Server) suspected(v *visit, id space.SpaceID) Suspected {
	if s.o.Suspects == nil {
		return Suspected{}
	}
	ctx, stop := context.WithTimeout(v.r.Context(), suspectWait)
	defer stop()
	found, err := s.o.Suspects(ctx, id)
	if err != nil {
		found.Partly = true
		if !errors.Is(err, context.Canceled) {
			s.log.WarnContext(ctx, "look for passwords in what a space has", "space", id, "err", err)
		}
	}
	return found
}

// warnOf answers with what was found, and a way to go on or back.
func (s *Server) warnOf(v *visit, m store.Membership, found Suspected, body suspectsPage) error {
	body.Space, body.Suspected = m, found
	for _, p := range found.Places {
		body.Places = append(body.Places, suspectItem{p, tools.FileURL("", m.ID, string(p.Path))})
	}
	return s.page(v, http.StatusOK, "suspects", page{Title: "Before it is sent", Space: &m, Body: body})
}

// remoteForm is the repository that an owner gave; sure tells that they were warned of
// it and go on. over says what to tell them where what they go on with is over.
func (s *Server) remoteForm(v *visit, m store.Membership) (form NewRemote, sure bool, over string, err error) {
	value := func(name string) string { return strings.TrimSpace(v.r.PostFormValue(name)) }
	var f remoteFlow
	if id := value("go"); id != "" {
		ok, err := s.takeFlow(v, flowRemote, string(m.ID)+remoteAsked+id, &f)
		if err != nil || !ok || f.Remote.Space != m.ID {
			return NewRemote{}, false, "This took too long, or was done already. Nothing was changed now; fill in the form again.", err
		}
		return f.Remote, true, "", nil
	}
	form = NewRemote{
		Space: m.ID, URL: value("url"), Branch: value("branch"), Username: value("username"), Token: value("token"),
		AllowWhatLooksSecret: value("secrets") == "1",
	}
	if id := value("kept"); id != "" {
		ok, err := s.takeFlow(v, flowRemote, string(m.ID)+remoteKept+id, &f)
		switch {
		case err != nil:
			return form, false, "", err
		case !ok || f.Remote.Space != m.ID:
			if form.Token == "" {
				return form, false, "This took too long, or was done already. Nothing was changed now; give the token again, if there is one.", nil
			}
		case sameRemote(f.Remote.URL, form.URL): // a token goes to no other place than it was given for
			sure = f.Sure
			form.Token = cmp.Or(form.Token, f.Remote.Token)
		}
	}
	return form, sure, "", nil
}

// sameRemote tells whether two addresses lead to the same place: transfers leave out
// slashes at the end, and nothing else is the same on every server.
func sameRemote(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// warnOfRemote keeps what the owner gave, with its token, and asks them.
func (s *Server) warnOfRemote(v *visit, m store.Membership, form NewRemote, found Suspected) error {
	id := rand.Text()
	if err := s.keepFlow(v, flowRemote, string(m.ID)+remoteAsked+id, &remoteFlow{Remote: form}); err != nil {
		return err
	}
	return s.warnOf(v, m, found, suspectsPage{Where: form.URL, Action: inSpace(m.ID, "remote"), Values: []formValue{{"go", id}}})
}

// remoteAgain shows the form with what is wrong, and keeps its token and that its owner
// is sure, for another try with the same address.
func (s *Server) remoteAgain(v *visit, m store.Membership, form NewRemote, sure bool, found []FoundSecret, p page) error {
	kept := keptRemote{Token: form.Token != ""}
	if form.URL != "" && (kept.Token || sure) {
		id := rand.Text()
		// Where it cannot be kept it is given again.
		if err := s.keepFlow(v, flowRemote, string(m.ID)+remoteKept+id, &remoteFlow{Remote: form, Sure: sure}); err == nil {
			kept.ID = id
		}
	}
	return s.remotePage(v, m, form, kept, found, p)
}

// keptRemote is what is kept for a form that comes back; its ID is empty where nothing is.
type keptRemote struct {
	ID    string
	Token bool
}

// warnOfRepository asks an owner who chose one at GitHub, or has one made; values are
// what they chose. The list of repositories stays for them to go on with.
func (s *Server) warnOfRepository(v *visit, m store.Membership, kept githubFlow, found Suspected, body suspectsPage) error {
	if err := s.keepFlow(v, flowFound, string(m.ID), &kept); err != nil {
		return err
	}
	body.Back = githubPath(m.ID) + "/pick"
	body.Values = append(body.Values, formValue{"sure", "1"})
	return s.warnOf(v, m, found, body)
}
