package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/internal/space"
	"satchel/tools"
)

// Suspected is what may be passwords in what a space holds now: places, and no
// values. It is for warnings alone.
type Suspected struct {
	// Places are MaxSuspects at most; More is how many there are beside them.
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
	// Print is the same wherever the line's values are, and is not shown; empty where it
	// is not known.
	Print string
}

// key names what is at a place. It is short, since it is kept with what else is of a form
// (store.PutFlow), and of a hash that nobody can have two values meet in.
func (p SuspectPlace) key() string {
	name := p.Print
	if name == "" {
		name = fmt.Sprintf("%s\x00%d", p.Path, p.Line)
	}
	sum := sha256.Sum256([]byte(name))
	return string(sum[:suspectKey])
}

// Bounds of what a look for passwords tells.
const (
	// MaxSuspects is how many places a look names, so that they are known again.
	MaxSuspects = 500
	maxLooked   = 1000 // places that are known again after several looks
	maxWarned   = 20   // that a warning shows
	suspectKey  = 8    // bytes
)

// looked is a look for passwords, and what a person was told of it and of those before.
type looked struct {
	// Head is the space's before the look; empty where it is not known.
	Head   space.CommitID `json:"head,omitempty"`
	Shown  []byte         `json:"shown,omitempty"` // keys of places
	Partly bool           `json:"partly,omitempty"`
	More   bool           `json:"more,omitempty"`
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
	Remote  NewRemote `json:"remote"`
	Allowed []byte    `json:"allowed,omitempty"` // packPrints of Remote's
	// Looked is what they are asked about; of what is kept, what they were warned of for
	// this repository and went on.
	Looked *looked `json:"looked,omitempty"`
}

// remote is what the owner gave, with what they were shown and said is no secret.
func (f *remoteFlow) remote() NewRemote {
	f.Remote.AllowSecrets = unpackPrints(f.Allowed)
	return f.Remote
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
	Again  bool // they were asked before
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

// lookAgain looks for passwords before a space is sent somewhere, and tells whether a
// person is to be asked. before is the look that they were told of and went on after; nil
// is none. Where the space has moved since, they are asked again about what they were not
// told of, which found names first then, and not because somebody writes all the time.
func (s *Server) lookAgain(v *visit, id space.SpaceID, before *looked) (found Suspected, now *looked, ask bool) {
	now = &looked{}
	if s.o.Suspects == nil {
		return found, now, false
	}
	if s.o.Workspace != nil {
		if head, err := s.o.Workspace.Head(v.r.Context(), id); err == nil {
			now.Head = head
		}
	}
	if before != nil && before.Head != "" && before.Head == now.Head {
		return found, before, false
	}
	found = s.suspected(v, id)
	now.Partly, now.More = found.Partly, found.More > 0
	ask = found.asks()
	shown := map[string]bool{}
	if before != nil {
		for k := range slices.Chunk(before.Shown, suspectKey) {
			shown[string(k)] = true
		}
		ask = found.Partly && !before.Partly || now.More && !before.More
		now.Partly, now.More = found.Partly || before.Partly, now.More || before.More
	}
	var fresh, known []SuspectPlace
	for _, p := range found.Places[:min(len(found.Places), MaxSuspects)] {
		if shown[p.key()] {
			known = append(known, p)
			continue
		}
		fresh = append(fresh, p)
	}
	found.Places = append(fresh, known...)
	for _, p := range fresh {
		ask = true
		if k := p.key(); !shown[k] {
			shown[k] = true
			now.Shown = append(now.Shown, k...)
		}
	}
	if before != nil {
		now.Shown = append(now.Shown, before.Shown...)
	}
	now.Shown = now.Shown[:min(len(now.Shown), maxLooked*suspectKey)]
	return found, now, ask
}

// warnOf answers with what was found, and a way to go on or back.
func (s *Server) warnOf(v *visit, m store.Membership, found Suspected, body suspectsPage) error {
	body.Space, body.Suspected = m, found
	shown := min(len(found.Places), maxWarned)
	body.More += len(found.Places) - shown
	for _, p := range found.Places[:shown] {
		body.Places = append(body.Places, suspectItem{p, tools.FileURL("", m.ID, string(p.Path))})
	}
	return s.page(v, http.StatusOK, "suspects", page{Title: "Before it is sent", Space: &m, Body: body})
}

// remoteForm is the repository that an owner gave; sure is the look that they were warned
// of and go on after, and nil where they were not. over says what to tell them where what
// they go on with is over.
func (s *Server) remoteForm(v *visit, m store.Membership) (form NewRemote, sure *looked, over string, err error) {
	value := func(name string) string { return strings.TrimSpace(v.r.PostFormValue(name)) }
	var f remoteFlow
	if id := value("go"); id != "" {
		ok, err := s.takeFlow(v, flowRemote, string(m.ID)+remoteAsked+id, &f)
		if err != nil || !ok || f.Remote.Space != m.ID {
			return NewRemote{}, nil, "This took too long, or was done already. Nothing was changed now; fill in the form again.", err
		}
		return f.remote(), f.Looked, "", nil
	}
	form = NewRemote{
		Space: m.ID, URL: value("url"), Branch: value("branch"), Username: value("username"), Token: value("token"),
	}
	if id := value("kept"); id != "" {
		ok, err := s.takeFlow(v, flowRemote, string(m.ID)+remoteKept+id, &f)
		switch {
		case err != nil:
			return form, nil, "", err
		case !ok || f.Remote.Space != m.ID:
			if form.Token == "" {
				return form, nil, "This took too long, or was done already. Nothing was changed now; give the token again, if there is one.", nil
			}
		default:
			form.AllowSecrets = f.remote().AllowSecrets
			if sameRemote(f.Remote.URL, form.URL) { // a token goes to no other place than it was given for
				sure = f.Looked
				form.Token = cmp.Or(form.Token, f.Remote.Token)
			}
		}
	}
	form.AllowSecrets = allowedIn(form.AllowSecrets, value("secrets"))
	return form, sure, "", nil
}

// sameRemote tells whether two addresses lead to the same place: transfers leave out
// slashes at the end, and nothing else is the same on every server.
func sameRemote(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// warnOfRemote keeps what the owner gave, with its token, and asks them.
func (s *Server) warnOfRemote(v *visit, m store.Membership, form NewRemote, found Suspected, look *looked, again bool) error {
	id := rand.Text()
	if err := s.keepFlow(v, flowRemote, string(m.ID)+remoteAsked+id, &remoteFlow{Remote: form, Allowed: packPrints(form.AllowSecrets), Looked: look}); err != nil {
		return err
	}
	return s.warnOf(v, m, found, suspectsPage{Where: form.URL, Again: again, Action: inSpace(m.ID, "remote"), Values: []formValue{{"go", id}}})
}

// remoteAgain shows the form with what is wrong, and keeps its token and that its owner
// is sure, for another try with the same address, and what they said is no secret.
func (s *Server) remoteAgain(v *visit, m store.Membership, form NewRemote, sure *looked, found []FoundSecret, p page) error {
	if form.URL == "" {
		form.Token = "" // a token goes to no other place than it was given for
	}
	kept := keptRemote{Token: form.Token != ""}
	if form.URL != "" && (kept.Token || sure != nil) || len(form.AllowSecrets) > 0 {
		id := rand.Text()
		// Where it cannot be kept it is given again.
		if err := s.keepFlow(v, flowRemote, string(m.ID)+remoteKept+id, &remoteFlow{Remote: form, Allowed: packPrints(form.AllowSecrets), Looked: sure}); err == nil {
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

// askedRepository is of which repository at GitHub a person was asked, and what they were
// told of.
type askedRepository struct {
	ID     string  `json:"id"` // of the page that asked
	Choice string  `json:"choice"`
	Public bool    `json:"public,omitempty"`
	Looked *looked `json:"looked"`
}

// sureOf is the look that a person was told of for this choice and went on after; nil
// where they were not. A newer list of repositories, in which one may be public that was
// not, has nobody sure of anything.
func (f githubFlow) sureOf(v *visit, choice string, public bool) *looked {
	a := f.Asked
	if a == nil || a.ID != v.r.PostFormValue("sure") || a.Choice != choice || a.Public != public {
		return nil
	}
	return a.Looked
}

// warnOfRepository asks an owner who chose one at GitHub, or has one made; values are
// what they chose. The list of repositories stays for them to go on with.
func (s *Server) warnOfRepository(v *visit, m store.Membership, kept githubFlow, choice string, look *looked, found Suspected, body suspectsPage) error {
	kept.Asked = &askedRepository{ID: rand.Text(), Choice: choice, Public: body.Public, Looked: look}
	if err := s.keepFlow(v, flowFound, string(m.ID), &kept); err != nil {
		return err
	}
	body.Back = githubPath(m.ID) + "/pick"
	body.Values = append(body.Values, formValue{"sure", kept.Asked.ID})
	return s.warnOf(v, m, found, body)
}
