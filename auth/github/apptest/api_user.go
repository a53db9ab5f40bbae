package apptest

import (
	"encoding/json"
	"net/http"
	"regexp"
)

func (s *Server) emails(c *call) answer {
	// An app needs the permission to read addresses.
	if rank(c.app.manifest.Permissions["emails"]) == 0 {
		return unreachable
	}
	return ok([]object{{"email": c.tok.person.login + "@example.com", "primary": true, "verified": true, "visibility": nil}})
}

// userInstallations lists the app's installations that the person sees, in
// whatever role: a member who may only read is among them.
func (s *Server) userInstallations(c *call) answer {
	var all []any
	for _, i := range sortedInstallations(c.w) {
		if i.app == c.app && c.w.sees(c.tok.person, i) {
			all = append(all, s.installation(i))
		}
	}
	return s.list(c, "installations", all, nil)
}

func (s *Server) userRepositories(c *call) answer {
	i := c.ofApp()
	switch {
	case i == nil || !c.w.sees(c.tok.person, i):
		return notFound
	case i.suspendedBy != nil:
		return suspended
	}
	var all []any
	for _, r := range c.w.repositories(i) {
		if p := c.w.permission(c.tok.person, r); p != "none" {
			all = append(all, s.repository(r, p))
		}
	}
	return s.list(c, "repositories", all, object{"repository_selection": i.selection()})
}

func (s *Server) userByID(c *call) answer {
	a := c.w.accounts[c.number("id")]
	if a == nil {
		return notFound
	}
	return ok(s.publicUser(a))
}

// getRepository serves a repository by its name or id.
func (s *Server) getRepository(c *call) answer {
	r := c.w.repos[c.number("id")]
	if c.PathValue("id") == "" {
		r = c.w.repo(c.PathValue("owner") + "/" + c.PathValue("repo"))
	}
	if r == nil || !c.w.reaches(c.tok, r) && r.private {
		return notFound
	}
	permission := ""
	if c.tok.person != nil {
		permission = c.w.permission(c.tok.person, r)
	}
	return ok(s.repository(r, permission))
}

func (s *Server) getPermission(c *call) answer {
	r := c.w.repo(c.PathValue("owner") + "/" + c.PathValue("repo"))
	if r == nil || !c.w.reaches(c.tok, r) {
		return notFound
	}
	p := c.w.account(c.PathValue("username"))
	if p == nil || p.org {
		return failed(http.StatusNotFound, c.PathValue("username")+" is not a user")
	}
	role := c.w.permission(p, r)
	// The older field knows four.
	legacy := map[string]string{"triage": "read", "maintain": "write"}[role]
	if legacy == "" {
		legacy = role
	}
	u := s.simpleUser(p)
	u["permissions"], u["role_name"] = permissions(role), role
	return ok(object{"permission": legacy, "role_name": role, "user": u})
}

var repositoryName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// createRepository makes one with the person's token, where the app may administer
// repositories of that account.
func (s *Server) createRepository(c *call) answer {
	owner, person := c.tok.person, c.tok.person
	if org := c.PathValue("org"); org != "" {
		owner = c.w.account(org)
	}
	if owner == nil || c.PathValue("org") != "" && !owner.org {
		return notFound
	}
	i := c.w.installed(c.app, owner)
	switch {
	case person != nil && owner != person && owner.members[person.id] == "":
		return notFound
	case i == nil || i.suspendedBy != nil || rank(i.permissions["administration"]) < rank("write"):
		return unreachable
	case person == nil && (i != c.tok.installation || !c.tok.allows("administration", "write")):
		return unreachable
	}
	var in struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Private     bool   `json:"private"`
		AutoInit    bool   `json:"auto_init"`
	}
	if json.Unmarshal(c.body, &in) != nil {
		return failed(http.StatusBadRequest, "Problems parsing JSON")
	}
	if !repositoryName.MatchString(in.Name) || c.w.repo(owner.login+"/"+in.Name) != nil {
		return answer{status: http.StatusUnprocessableEntity, body: object{
			"message": "Repository creation failed.", "documentation_url": "https://docs.github.com/rest",
			"errors": []object{{"resource": "Repository", "code": "custom", "field": "name", "message": "name already exists on this account"}},
		}}
	}
	r := s.makeRepository(c.w, owner, in.Name, in.Description, in.Private)
	if person != nil && owner != person {
		r.collaborators[person.id] = "admin"
	}
	if !i.all {
		i.repos[r.id] = true // what an app makes it reaches
	}
	if in.AutoInit {
		if _, err := s.push(s.gitDir(r), map[string]string{"README.md": "# " + in.Name + "\n"}); err != nil {
			panic(err)
		}
	}
	return answer{status: http.StatusCreated, body: s.repository(r, "admin"), header: http.Header{"Location": {s.API() + "/repos/" + r.fullName()}}}
}
