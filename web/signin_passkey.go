package web

import (
	"encoding/json"
	"net/http"

	"satchel/auth/passkey"
	"satchel/auth/store"
	"satchel/internal/fault"
)

// passkeyFlow is what the server remembers of a ceremony. A browser has one of each
// kind at a time, as it asks the person for one.
type passkeyFlow struct {
	flow
	Data []byte `json:"data"` // the service's own
}

// next tells the script where to go.
type next struct {
	Location string `json:"location"`
}

// beginPasskey is POST /signin/passkey/begin.
func (s *Server) beginPasskey(v *visit) error {
	options, data, err := s.o.Passkeys.BeginSignIn()
	if err != nil {
		return err
	}
	if err := s.keepFlow(v, flowPasskeySignIn, "", &passkeyFlow{Data: data}); err != nil {
		return err
	}
	s.json(v, http.StatusOK, json.RawMessage(options))
	return nil
}

// finishPasskey is POST /signin/passkey/finish.
func (s *Server) finishPasskey(v *visit) error {
	var in struct {
		Response json.RawMessage `json:"response"`
		Return   string          `json:"return"`
	}
	if err := readJSON(v, &in); err != nil {
		return err
	}
	var f passkeyFlow
	if ok, err := s.takeFlow(v, flowPasskeySignIn, "", &f); err != nil {
		return err
	} else if !ok {
		return errFlowOver()
	}
	var user store.User
	id, credential, err := s.o.Passkeys.FinishSignIn(f.Data, in.Response, func(id, handle []byte) (passkey.User, error) {
		u, _, err := s.o.Accounts.PasskeyByID(v.r.Context(), id)
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
	if err := s.o.Accounts.UsePasskey(v.r.Context(), id, credential); err != nil {
		return err
	}
	if err := s.signIn(v, user.ID, "passkey"); err != nil {
		return err
	}
	s.json(v, http.StatusOK, next{s.url(localPath(in.Return))})
	return nil
}

// passkeyUser is a user as passkeys know them. The handle is the id, which says
// nothing about the person.
func (s *Server) passkeyUser(v *visit, u store.User) (passkey.User, error) {
	keys, err := s.o.Accounts.Passkeys(v.r.Context(), u.ID)
	if err != nil {
		return passkey.User{}, err
	}
	out := passkey.User{ID: []byte(u.ID), Name: u.Name, Display: u.Display}
	for _, k := range keys {
		out.Credentials = append(out.Credentials, k.Credential)
	}
	return out, nil
}

// beginAddPasskey is POST /account/passkeys/begin.
func (s *Server) beginAddPasskey(v *visit) error {
	u, err := s.passkeyUser(v, v.user)
	if err != nil {
		return err
	}
	options, data, err := s.o.Passkeys.BeginRegistration(u)
	if err != nil {
		return err
	}
	if err := s.keepFlow(v, flowPasskeyAdd, "", &passkeyFlow{Data: data}); err != nil {
		return err
	}
	s.json(v, http.StatusOK, json.RawMessage(options))
	return nil
}

// finishAddPasskey is POST /account/passkeys/finish.
func (s *Server) finishAddPasskey(v *visit) error {
	var in struct {
		Response json.RawMessage `json:"response"`
		Name     string          `json:"name"`
		Return   string          `json:"return"`
	}
	if err := readJSON(v, &in); err != nil {
		return err
	}
	var f passkeyFlow
	if ok, err := s.takeFlow(v, flowPasskeyAdd, "", &f); err != nil {
		return err
	} else if !ok {
		return errFlowOver()
	}
	u, err := s.passkeyUser(v, v.user)
	if err != nil {
		return err
	}
	id, credential, err := s.o.Passkeys.FinishRegistration(u, f.Data, in.Response)
	if err != nil {
		return err
	}
	name := shorten(in.Name, 60)
	if name == "" {
		name = deviceOf(v.session.Agent)
	}
	err = s.o.Accounts.AddPasskey(v.r.Context(), v.by(), store.Passkey{ID: id, User: v.user.ID, Name: name, Credential: credential})
	if err != nil {
		return err
	}
	if err := s.rotate(v); err != nil {
		return err
	}
	s.json(v, http.StatusOK, next{s.url(localPath(in.Return))})
	return nil
}
