package remote

import (
	"cmp"
	"crypto/rand"
	"strings"

	"satchel/internal/service"
	"satchel/web"
)

// flowRemote is the kind of flow for a form that the owner has to send again.
const flowRemote web.FlowKind = "remote"

// remoteFlow holds the owner's input, encrypted with a secret that only their browser has.
type remoteFlow struct {
	web.Flow
	Remote  newRemote `json:"remote"`
	Allowed []byte    `json:"allowed,omitempty"` // Remote.AllowSecrets, packed
}

// remoteKept is the text between the ID of the space and the ID of the form in the name of a flow.
const remoteKept = " kept "

// keptRemote identifies the input that is stored for another try. ID is empty if no
// input is stored.
type keptRemote struct {
	ID    string
	Token bool // a token is stored
}

// remoteForm reads the form of a remote. over is the problem to show if the stored input
// has expired.
func (s *pages) remoteForm(v *web.Visit, m service.View) (form newRemote, over string, err error) {
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
				return form, "The form expired or was already sent. Nothing was changed. If the repository needs a token, enter the token again.", nil
			}
		default:
			form.AllowSecrets = unpackPrints(f.Allowed)
			if sameRemote(f.Remote.URL, form.URL) { // never send a token to another address
				form.Token = cmp.Or(form.Token, f.Remote.Token)
			}
		}
	}
	form.AllowSecrets = allowedIn(form.AllowSecrets, value("secrets"))
	return form, "", nil
}

// sameRemote reports whether two addresses lead to the same repository. Slashes at the end do not
// count, because transfers remove them. A server may distinguish addresses that differ otherwise.
func sameRemote(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// remoteAgain shows the form with a problem. It stores the token and the secrets that the
// owner allowed, for another try. The stored token is used only for the same address.
func (s *pages) remoteAgain(v *web.Visit, m service.View, form newRemote, found []service.FoundSecret, p web.Page) error {
	if form.URL == "" {
		form.Token = "" // never send a token to another address
	}
	kept := keptRemote{Token: form.Token != ""}
	if form.URL != "" && kept.Token || len(form.AllowSecrets) > 0 {
		id := rand.Text()
		// If the server cannot store the form, the owner enters it again.
		if err := s.KeepFlow(v, flowRemote, string(m.ID)+remoteKept+id, &remoteFlow{Remote: form, Allowed: packPrints(form.AllowSecrets)}); err == nil {
			kept.ID = id
		}
	}
	return s.remotePage(v, m, form, kept, found, p)
}
