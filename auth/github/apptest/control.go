package apptest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

func unmarshal(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("apptest: %w", err)
	}
	return nil
}

// order is what another process may ask, with whatever of these it needs.
type order struct {
	Login, Org, Base, Owner, Name, Repo, Permission, App string
	Members, Collaborators, Files                        map[string]string
	Private                                              bool
	Installation                                         int64
	Args                                                 []string
}

// obey does what another process asks: POST /_control/NAME with an order as JSON.
// A mistake of the test is an error.
func (s *Server) obey(name string, o order) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	switch name {
	case "person":
		return s.AddPerson(o.Login), nil
	case "org":
		return s.AddOrg(o.Login, o.Base, o.Members), nil
	case "repository":
		return s.AddRepository(Repository{Owner: o.Owner, Name: o.Name, Private: o.Private, Collaborators: o.Collaborators}), nil
	case "permission":
		s.SetPermission(o.Repo, o.Login, o.Permission)
		return nil, nil
	case "suspend":
		s.Suspend(o.Installation)
		return nil, nil
	case "push":
		return s.Push(o.Repo, o.Files), nil
	case "git":
		return s.Git(o.Repo, o.Args...)
	case "requests":
		return s.Requests(), nil
	case "issued":
		return s.Issued(), nil
	case "app":
		return s.App(o.App), nil
	case "installations":
		all := []object{}
		s.with(func(w *world) {
			for _, i := range sortedInstallations(w) {
				all = append(all, object{"id": i.id, "account": i.account.login, "all": i.all})
			}
		})
		return all, nil
	}
	return nil, fmt.Errorf("apptest: there is no order %q", name)
}

// Issued are all the secrets that were ever given out: tokens of people and
// installations, and the apps' own. They are what a search for leaks seeks.
func (s *Server) Issued() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.world.issued)
	for _, a := range s.world.apps {
		all = append(all, a.clientSecret, strings.Split(a.pem(), "\n")[1])
		if a.hookSecret != "" {
			all = append(all, a.hookSecret)
		}
	}
	return all
}

// control is for another process: the orders, and GET /_violations.
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/_violations" {
		reply(w, http.StatusOK, append([]string{}, s.Violations()...))
		return
	}
	name, found := strings.CutPrefix(r.URL.Path, "/_control/")
	if !found || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	var o order
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&o)
	var v any
	if err == nil {
		v, err = s.obey(name, o)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply(w, http.StatusOK, v)
}
