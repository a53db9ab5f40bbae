package apptest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

func unmarshal(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("apptest: %w", err)
	}
	return nil
}

// order is what another process may ask, with whatever of these it needs.
type order struct {
	Login, To, Role, Org, Base     string
	Members                        map[string]string
	Owner, Name, Description, Repo string
	Private, Archived, Empty       bool
	Collaborators                  map[string]string
	Permission, Reason, Path       string
	App, Account, By               string
	Repositories                   []string
	Installation                   int64
	Files                          map[string]string
	Args                           []string
	Seconds                        int
	Behave                         Behaviour
	Event, ID                      string
}

// orders are what another process may have done: POST /_control/NAME with an order
// as JSON.
func (s *Server) orders() map[string]func(o order) (any, error) {
	done := func(f func(o order)) func(order) (any, error) {
		return func(o order) (any, error) { f(o); return nil, nil }
	}
	return map[string]func(o order) (any, error){
		"person": func(o order) (any, error) { return s.AddPerson(o.Login), nil },
		"org":    func(o order) (any, error) { return s.AddOrg(o.Login, o.Base, o.Members), nil },
		"role":   done(func(o order) { s.SetRole(o.Org, o.Login, o.Role) }),
		"repository": func(o order) (any, error) {
			return s.AddRepository(Repository{
				Owner: o.Owner, Name: o.Name, Description: o.Description, Private: o.Private, Archived: o.Archived, Empty: o.Empty, Collaborators: o.Collaborators,
			}), nil
		},
		"permission":        done(func(o order) { s.SetPermission(o.Repo, o.Login, o.Permission) }),
		"archive":           done(func(o order) { s.Archive(o.Repo, o.Archived) }),
		"refuse":            done(func(o order) { s.Refuse(o.Repo, o.Reason) }),
		"rename-repository": done(func(o order) { s.RenameRepository(o.Repo, o.Name) }),
		"transfer":          done(func(o order) { s.TransferRepository(o.Repo, o.To) }),
		"delete-repository": done(func(o order) { s.DeleteRepository(o.Repo) }),
		"rename-account":    done(func(o order) { s.RenameAccount(o.Login, o.To) }),
		"delete-person":     done(func(o order) { s.DeletePerson(o.Login) }),
		"install": func(o order) (any, error) {
			return s.Install(Installing{App: o.App, Account: o.Account, By: o.By, Repositories: o.Repositories}), nil
		},
		"choose":      done(func(o order) { s.Choose(o.Installation, o.Repositories...) }),
		"suspend":     done(func(o order) { s.Suspend(o.Installation) }),
		"unsuspend":   done(func(o order) { s.Unsuspend(o.Installation) }),
		"uninstall":   done(func(o order) { s.Uninstall(o.Installation) }),
		"publish":     done(func(o order) { s.Publish(o.App) }),
		"delete-app":  done(func(o order) { s.DeleteApp(o.App) }),
		"deauthorize": done(func(o order) { s.Deauthorize(o.App, o.Login) }),
		"push":        func(o order) (any, error) { return s.Push(o.Repo, o.Files), nil },
		"git":         func(o order) (any, error) { return s.Git(o.Repo, o.Args...) },
		"advance":     done(func(o order) { s.Advance(time.Duration(o.Seconds) * time.Second) }),
		"behave":      done(func(o order) { s.Behave(o.Behave) }),
		"event":       done(func(o order) { s.Announce(o.App, o.Event, o.Installation) }),
		"idle":        done(func(order) { s.idleBut(1) }),
		"deliveries":  func(order) (any, error) { return s.Deliveries(), nil },
		"requests":    func(order) (any, error) { return s.Requests(), nil },
		"issued":      func(order) (any, error) { return s.Issued(), nil },
		"log":         func(order) (any, error) { return s.Log(), nil },
		"app":         func(o order) (any, error) { return s.App(o.App), nil },
		"installations": func(order) (any, error) {
			all := []object{}
			s.with(func(w *world) {
				for _, i := range sortedInstallations(w) {
					all = append(all, object{"id": i.id, "app": i.app.slug, "account": i.account.login, "suspended": i.suspendedBy != nil, "all": i.all})
				}
			})
			return all, nil
		},
	}
}

// Announce sends an "installation" event of an action that did not happen, such as
// GitHub's that comes late, or again.
func (s *Server) Announce(slug, action string, installation int64) {
	s.with(func(w *world) {
		i := must(w.installations[installation], "installation")
		s.installationEvent(w, action, i, i.account, nil)
	})
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
	f := s.orders()[name]
	if !found || f == nil || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	var o order
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil && len(body) > 0 {
		err = unmarshal(body, &o)
	}
	var v any
	if err == nil {
		v, err = obey(f, o)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply(w, http.StatusOK, v)
}

// obey tells a mistake of the test's by an error.
func obey(f func(order) (any, error), o order) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return f(o)
}
