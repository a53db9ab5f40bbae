package apptest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

func (s *Server) getApp(c *call) answer {
	a := c.w.app(c.PathValue("slug"))
	if a == nil || !a.manifest.Public && a != c.app {
		return notFound
	}
	return ok(s.integration(c.w, a))
}

func (s *Server) hookConfig(c *call) answer {
	h := &c.app.manifest.Hook
	if c.Method == http.MethodPatch {
		var in struct{ URL, Secret *string }
		if json.Unmarshal(c.body, &in) != nil {
			return failed(http.StatusBadRequest, "Problems parsing JSON")
		}
		if in.URL != nil {
			h.URL = *in.URL
		}
		if in.Secret != nil {
			c.app.hookSecret = *in.Secret
		}
	}
	v := object{"content_type": "json", "insecure_ssl": "0", "url": h.URL}
	if c.app.hookSecret != "" {
		v["secret"] = "********"
	}
	return ok(v)
}

func (s *Server) listInstallations(c *call) answer {
	var all []any
	for _, i := range sortedInstallations(c.w) {
		if i.app == c.app {
			all = append(all, s.installation(i))
		}
	}
	return s.list(c, "", all, nil)
}

func (s *Server) getInstallation(c *call) answer {
	i := c.ofApp()
	if i == nil {
		return notFound
	}
	return ok(s.installation(i))
}

func (s *Server) deleteInstallation(c *call) answer {
	i := c.ofApp()
	if i == nil {
		return notFound
	}
	s.uninstall(c.w, i)
	return answer{status: http.StatusNoContent}
}

func (s *Server) setSuspended(c *call) answer {
	i := c.ofApp()
	if i == nil {
		return notFound
	}
	s.suspend(c.w, i, c.Method == http.MethodPut)
	return answer{status: http.StatusNoContent}
}

// mint makes an installation token.
func (s *Server) mint(c *call) answer {
	i := c.ofApp()
	switch {
	case i == nil:
		return notFound
	case i.suspendedBy != nil:
		return suspended
	}
	var in struct {
		Repositories []string          `json:"repositories"`
		IDs          []int64           `json:"repository_ids"`
		Permissions  map[string]string `json:"permissions"`
	}
	if len(c.body) > 0 && json.Unmarshal(c.body, &in) != nil {
		return failed(http.StatusBadRequest, "Problems parsing JSON")
	}
	reached := c.w.repositories(i)
	t := &token{app: i.app, installation: i, permissions: maps.Clone(i.permissions), expires: s.now().Add(installationLife)}
	chosen := slices.Clone(reached)
	if in.Repositories != nil || in.IDs != nil {
		chosen, t.repos = nil, []int64{}
		for _, r := range reached {
			if slices.Contains(in.IDs, r.id) || slices.Contains(in.Repositories, r.name) {
				chosen = append(chosen, r)
				t.repos = append(t.repos, r.id)
			}
		}
		if len(chosen) != len(in.IDs)+len(in.Repositories) {
			return invalid("There is at least one repository that does not exist or is not accessible to the parent installation.")
		}
	}
	if in.Permissions != nil {
		t.permissions = in.Permissions
		for name, level := range in.Permissions {
			if rank(level) > rank(i.permissions[name]) {
				return invalid("The permissions requested are not granted to this installation.")
			}
		}
	}
	t.permissions["metadata"] = "read" // comes with every other
	name := s.installationToken(t)
	c.w.tokens[name] = t
	c.w.issued = append(c.w.issued, name)
	v := object{"token": name, "expires_at": stamp(t.expires), "permissions": t.permissions, "repository_selection": "all"}
	if t.repos != nil || !i.all {
		v["repository_selection"] = "selected"
	}
	if t.repos != nil {
		var repos []object
		for _, r := range chosen {
			repos = append(repos, s.repository(r, ""))
		}
		v["repositories"] = repos
	}
	return answer{status: http.StatusCreated, body: v}
}

func (s *Server) endToken(c *call) answer {
	maps.DeleteFunc(c.w.tokens, func(_ string, t *token) bool { return t == c.tok })
	return answer{status: http.StatusNoContent}
}

// clientToken checks or ends a person's token for the app that shows its secret.
func (s *Server) clientToken(c *call) answer {
	if c.PathValue("client") != c.app.clientID {
		return notFound
	}
	var in struct {
		AccessToken string `json:"access_token"`
	}
	if json.Unmarshal(c.body, &in) != nil || in.AccessToken == "" {
		return invalid("Validation Failed")
	}
	t := c.w.tokens[in.AccessToken]
	if t == nil || t.app != c.app || t.person == nil || !t.expires.After(s.now()) {
		return notFound
	}
	if c.Method == http.MethodDelete {
		delete(c.w.tokens, in.AccessToken)
		c.w.revoked++
		return answer{status: http.StatusNoContent}
	}
	return ok(object{
		"id": t.person.id, "url": s.API() + "/authorizations/1", "scopes": []string{}, "token": in.AccessToken, "token_last_eight": in.AccessToken[len(in.AccessToken)-8:],
		"hashed_token": strings.Repeat("0", 64), "app": object{"client_id": c.app.clientID, "name": c.app.name, "url": c.app.manifest.URL},
		"note": nil, "note_url": nil, "updated_at": stamp(s.now()), "created_at": stamp(s.now()), "fingerprint": nil, "expires_at": stamp(t.expires),
		"user": s.simpleUser(t.person),
	})
}

// reaches tells whether a token reaches a repository in some way.
func (w *world) reaches(t *token, r *repository) bool {
	if t.person != nil {
		// A person's token reaches what both they and an installation do.
		for _, i := range w.installations {
			if i.app == t.app && i.suspendedBy == nil && slices.Contains(w.repositories(i), r) && w.permission(t.person, r) != "none" {
				return true
			}
		}
		return false
	}
	return slices.Contains(w.repositories(t.installation), r) && (t.repos == nil || slices.Contains(t.repos, r.id))
}

func (s *Server) installationRepositories(c *call) answer {
	var all []any
	for _, r := range c.w.repositories(c.tok.installation) {
		if c.w.reaches(c.tok, r) {
			all = append(all, s.repository(r, ""))
		}
	}
	return s.list(c, "repositories", all, object{"repository_selection": c.tok.installation.selection()})
}

// Revoked counts the tokens of people that the app ended.
func (s *Server) Revoked() int { s.mu.Lock(); defer s.mu.Unlock(); return s.world.revoked }

func (s *Server) repositoryInstallation(c *call) answer {
	r := c.w.repo(c.PathValue("owner") + "/" + c.PathValue("repo"))
	if r == nil {
		return notFound
	}
	for _, i := range c.w.installations {
		if i.app == c.app && slices.Contains(c.w.repositories(i), r) {
			return ok(s.installation(i))
		}
	}
	return notFound
}

func (t *token) allows(permission, level string) bool {
	return rank(t.permissions[permission]) >= rank(level)
}
