package web

import (
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
	// Partly tells that not all files were looked at.
	Partly bool
}

// SuspectPlace is a line that may have a password.
type SuspectPlace struct {
	Path space.Path
	Line int
}

// FindSuspects looks through what a space holds now, for a second at most.
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
}

// suspectsPage warns before a space is sent to where others may read it.
type suspectsPage struct {
	Space  store.Membership
	Where  string // it is sent
	Public bool   // everybody can read it there
	Action string
	Back   string
	Values []formValue // to go on with
	Places []suspectItem
	Suspected
}

type formValue struct{ Name, Value string }

type suspectItem struct {
	SuspectPlace
	URL string
}

// suspected looks for what may be passwords. What goes wrong with it stops nobody.
func (s *Server) suspected(v *visit, id space.SpaceID) Suspected {
	if s.o.Suspects == nil {
		return Suspected{}
	}
	ctx, stop := context.WithTimeout(v.r.Context(), suspectWait)
	defer stop()
	found, err := s.o.Suspects(ctx, id)
	if err != nil && !errors.Is(err, context.Canceled) {
		s.log.WarnContext(ctx, "look for passwords in what a space has", "space", id, "err", err)
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
// it and go on. Its space is empty where what they go on with is over.
func (s *Server) remoteForm(v *visit, m store.Membership) (form NewRemote, sure bool, err error) {
	value := func(name string) string { return strings.TrimSpace(v.r.PostFormValue(name)) }
	if id := value("go"); id != "" {
		var f remoteFlow
		ok, err := s.takeFlow(v, flowRemote, string(m.ID)+" "+id, &f)
		if err != nil || !ok || f.Remote.Space != m.ID {
			return NewRemote{}, true, err
		}
		return f.Remote, true, nil
	}
	return NewRemote{
		Space: m.ID, URL: value("url"), Branch: value("branch"), Username: value("username"), Token: value("token"),
		AllowWhatLooksSecret: value("secrets") == "1",
	}, false, nil
}

// warnOfRemote keeps what the owner gave, with its token, and asks them.
func (s *Server) warnOfRemote(v *visit, m store.Membership, form NewRemote, found Suspected) error {
	id := rand.Text()
	if err := s.keepFlow(v, flowRemote, string(m.ID)+" "+id, &remoteFlow{Remote: form}); err != nil {
		return err
	}
	path := inSpace(m.ID, "remote")
	return s.warnOf(v, m, found, suspectsPage{Where: form.URL, Action: path, Back: path, Values: []formValue{{"go", id}}})
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
