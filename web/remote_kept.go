package web

import (
	"cmp"
	"crypto/rand"
	"strings"

	"satchel/auth/store"
	"satchel/internal/service"
)

// flowRemote is of a form with a remote that its owner has to send again.
const flowRemote FlowKind = "remote"

// remoteFlow is what the owner gave; the token in it is sealed with a secret that their
// browser alone has.
type remoteFlow struct {
	Flow
	Remote  newRemote `json:"remote"`
	Allowed []byte    `json:"allowed,omitempty"` // packPrints of Remote's
}

// remoteKept is what flows of flowRemote are of, beside the space.
const remoteKept = " kept "

// keptRemote is what is kept for a form that comes back; its ID is empty if nothing is.
type keptRemote struct {
	ID    string
	Token bool
}

// remoteForm is the repository that an owner gave; over says what to tell them where what
// was kept of it is gone.
func (s *Site) remoteForm(v *Visit, m store.Membership) (form newRemote, over string, err error) {
	value := func(name string) string { return strings.TrimSpace(v.R.PostFormValue(name)) }
	form = newRemote{
		Space: m.ID, URL: value("url"), Branch: value("branch"), Username: value("username"), Token: value("token"),
	}
	if id := value("kept"); id != "" {
		var f remoteFlow
		ok, err := s.TakeFlow(v, flowRemote, string(m.ID)+remoteKept+id, &f)
		switch {
		case err != nil:
			return form, "", err
		case !ok || f.Remote.Space != m.ID:
			if form.Token == "" {
				return form, "This took too long, or was done already. Nothing was changed now; give the token again, if there is one.", nil
			}
		default:
			form.AllowSecrets = unpackPrints(f.Allowed)
			if sameRemote(f.Remote.URL, form.URL) { // a token goes to no other place than it was given for
				form.Token = cmp.Or(form.Token, f.Remote.Token)
			}
		}
	}
	form.AllowSecrets = allowedIn(form.AllowSecrets, value("secrets"))
	return form, "", nil
}

// sameRemote reports whether two addresses lead to the same place: transfers leave out
// slashes at the end, and nothing else is the same on every server.
func sameRemote(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// remoteAgain shows the form with what is wrong, and keeps its token for another try with
// the same address, and what its owner said is no secret.
func (s *Site) remoteAgain(v *Visit, m store.Membership, form newRemote, found []service.FoundSecret, p Page) error {
	if form.URL == "" {
		form.Token = "" // a token goes to no other place than it was given for
	}
	kept := keptRemote{Token: form.Token != ""}
	if form.URL != "" && kept.Token || len(form.AllowSecrets) > 0 {
		id := rand.Text()
		// Where it cannot be kept it is given again.
		if err := s.KeepFlow(v, flowRemote, string(m.ID)+remoteKept+id, &remoteFlow{Remote: form, Allowed: packPrints(form.AllowSecrets)}); err == nil {
			kept.ID = id
		}
	}
	return s.remotePage(v, m, form, kept, found, p)
}
