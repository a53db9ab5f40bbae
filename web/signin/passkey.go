package signin

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"satchel/auth/passkey"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/web"
)

// passkeyFlow is the flow of a passkey ceremony. Each tab has its own flow. The script sends
// the flow's name to finish the ceremony. The name is useless without the browser's secret.
type passkeyFlow struct {
	web.Flow
	Data []byte `json:"data"` // the passkey service's own data
}

// beginCeremony stores the passkey service's data for the ceremony. It answers with the
// service's options and the name of the ceremony.
func (s *pages) beginCeremony(v *web.Visit, kind web.FlowKind, options, data []byte) error {
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(options, &answer); err != nil {
		return fmt.Errorf("options of a passkey: %w", err)
	}
	id := rand.Text()
	if err := s.KeepFlow(v, kind, id, &passkeyFlow{Data: data}); err != nil {
		return err
	}
	answer["ceremony"] = json.RawMessage(strconv.Quote(id))
	s.JSON(v, http.StatusOK, answer)
	return nil
}

// finished is the script's request at the end of a ceremony.
type finished struct {
	Ceremony string          `json:"ceremony"`
	Response json.RawMessage `json:"response"`
	Name     string          `json:"name"` // the name of a new passkey; may be empty
	Return   string          `json:"return"`
}

// finishCeremony reads the script's request, and takes the flow of the ceremony. No other
// site can finish a ceremony: only a page of this server has its name, and only this
// browser has its secret. So the form token would add nothing. It could even fail a ceremony
// whose passkey the device has already created, because the token changes when a ceremony in
// another tab finishes first.
func (s *pages) finishCeremony(v *web.Visit, kind web.FlowKind) (in finished, f passkeyFlow, err error) {
	ok := false
	if err = web.ReadJSON(v, &in); err == nil {
		ok, err = s.TakeFlow(v, kind, in.Ceremony, &f)
	}
	if ok && err == nil {
		return in, f, nil
	}
	if v.In {
		if forged := web.CheckForm(v); forged != nil {
			return in, f, forged
		}
	}
	if err == nil {
		err = web.ErrFlowOver()
	}
	return in, f, err
}

type next struct {
	Location string `json:"location"`
}

// beginPasskey handles POST /signin/passkey/begin.
func (s *pages) beginPasskey(v *web.Visit) error {
	options, data, err := s.Passkeys.BeginSignIn()
	if err != nil {
		return err
	}
	return s.beginCeremony(v, web.FlowPasskeySignIn, options, data)
}

// finishPasskey handles POST /signin/passkey/finish.
func (s *pages) finishPasskey(v *web.Visit) error {
	in, f, err := s.finishCeremony(v, web.FlowPasskeySignIn)
	if err != nil {
		return err
	}
	var user store.User
	id, credential, err := s.Passkeys.FinishSignIn(f.Data, in.Response, func(id, handle []byte) (passkey.User, error) {
		u, _, err := s.Accounts.PasskeyByID(v.R.Context(), id)
		if fault.CodeOf(err) == fault.NotFound {
			return passkey.User{}, fault.New(fault.Unauthenticated, "This server does not know the passkey; it may have been removed here. Choose another one, or sign in another way.")
		}
		if err != nil {
			return passkey.User{}, err
		}
		user = u
		return s.passkeyUser(v, u)
	})
	if err != nil {
		return err
	}
	if v.In && v.User.ID != user.ID {
		return fault.New(fault.Conflict, "%s signed in here in another tab meanwhile. Sign out there first to sign in as %s.", v.User.Name, user.Name)
	}
	if err := s.Accounts.UsePasskey(v.R.Context(), id, credential); err != nil {
		return err
	}
	if err := s.SignIn(v, user.ID, "passkey"); err != nil {
		return err
	}
	s.JSON(v, http.StatusOK, next{s.URL(web.LocalPath(in.Return))})
	return nil
}

// passkeyUser returns a user with their passkeys. The user handle is the user's ID, which
// reveals nothing about the person.
func (s *pages) passkeyUser(v *web.Visit, u store.User) (passkey.User, error) {
	keys, err := s.Accounts.Passkeys(v.R.Context(), u.ID)
	if err != nil {
		return passkey.User{}, err
	}
	out := passkey.User{ID: []byte(u.ID), Name: u.Name, Display: u.Display}
	for _, k := range keys {
		out.Credentials = append(out.Credentials, k.Credential)
	}
	return out, nil
}

// beginAddPasskey handles POST /account/passkeys/begin.
func (s *pages) beginAddPasskey(v *web.Visit) error {
	u, err := s.passkeyUser(v, v.User)
	if err != nil {
		return err
	}
	options, data, err := s.Passkeys.BeginRegistration(u)
	if err != nil {
		return err
	}
	return s.beginCeremony(v, web.FlowPasskeyAdd, options, data)
}

// freeName returns name, with a number if the person already has a passkey of that name.
func freeName(name string, keys []store.Passkey) string {
	free := name
	for n := 2; slices.ContainsFunc(keys, func(k store.Passkey) bool { return k.Name == free }); n++ {
		free = name + " " + strconv.Itoa(n)
	}
	return free
}

// finishAddPasskey handles POST /account/passkeys/finish.
func (s *pages) finishAddPasskey(v *web.Visit) error {
	in, f, err := s.finishCeremony(v, web.FlowPasskeyAdd)
	if err != nil {
		return err
	}
	u, err := s.passkeyUser(v, v.User)
	if err != nil {
		return err
	}
	id, credential, err := s.Passkeys.FinishRegistration(u, f.Data, in.Response)
	if err != nil {
		return err
	}
	name := web.Shorten(in.Name, 60)
	if name == "" {
		name = web.DeviceOf(v.Session.Agent)
	}
	keys, err := s.Accounts.Passkeys(v.R.Context(), v.User.ID)
	if err != nil {
		return err
	}
	name = freeName(name, keys)
	err = s.Accounts.AddPasskey(v.R.Context(), v.By(), store.Passkey{ID: id, User: v.User.ID, Name: name, Credential: credential})
	if err != nil {
		return err
	}
	// Another tab that finishes at the same time may have rotated the session first.
	if err := s.RotateSession(v); err != nil && fault.CodeOf(err) != fault.Unauthenticated {
		return err
	}
	s.JSON(v, http.StatusOK, next{s.URL(web.LocalPath(in.Return))})
	return nil
}
