package apptest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
)

func (s *Server) getInstallation(c *call) answer {
	i := c.ofApp()
	if i == nil {
		return notFound
	}
	return ok(s.installation(i))
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

// clientToken ends a person's token for the app that shows its secret.
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
	delete(c.w.tokens, in.AccessToken)
	c.w.revoked++
	return answer{status: http.StatusNoContent}
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

// Revoked counts the tokens of people that the app ended.
func (s *Server) Revoked() int { s.mu.Lock(); defer s.mu.Unlock(); return s.world.revoked }

func (t *token) allows(permission, level string) bool {
	return rank(t.permissions[permission]) >= rank(level)
}
