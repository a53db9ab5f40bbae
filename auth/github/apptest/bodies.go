package apptest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"time"
)

type object = map[string]any

func nodeID(kind string, id int64) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s:%d", kind, id))
}

func (a *account) kind() string {
	if a.org {
		return "Organization"
	}
	return "User"
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// simpleUser is how an account stands in other things.
func (s *Server) simpleUser(a *account) object {
	url := s.API() + "/users/" + a.login
	return object{
		"login": a.login, "id": a.id, "node_id": nodeID(a.kind(), a.id), "avatar_url": s.URL + "/avatars/" + a.login, "gravatar_id": "",
		"url": url, "html_url": s.URL + "/" + a.login, "followers_url": url + "/followers", "following_url": url + "/following{/other_user}",
		"gists_url": url + "/gists{/gist_id}", "starred_url": url + "/starred{/owner}{/repo}", "subscriptions_url": url + "/subscriptions",
		"organizations_url": url + "/orgs", "repos_url": url + "/repos", "events_url": url + "/events{/privacy}",
		"received_events_url": url + "/received_events", "type": a.kind(), "site_admin": false, "user_view_type": "public",
	}
}

// publicUser is an account by itself.
func (s *Server) publicUser(a *account) object {
	v := s.simpleUser(a)
	maps.Copy(v, object{
		"name": nil, "company": nil, "blog": "", "location": nil, "email": nil, "hireable": nil, "bio": nil,
		"public_repos": 0, "public_gists": 0, "followers": 0, "following": 0, "created_at": stamp(a.created), "updated_at": stamp(a.created),
	})
	if a.name != "" {
		v["name"] = a.name
	}
	return v
}

// repository is a repository as somebody sees it: permission is theirs, empty for
// nobody's.
func (s *Server) repository(r *repository, permission string) object {
	url, html := s.API()+"/repos/"+r.fullName(), s.URL+"/"+r.fullName()
	visibility := "public"
	if r.private {
		visibility = "private"
	}
	v := object{
		"id": r.id, "node_id": nodeID("Repository", r.id), "name": r.name, "full_name": r.fullName(), "owner": s.simpleUser(r.owner),
		"private": r.private, "visibility": visibility, "description": nil, "fork": false, "archived": false, "disabled": false,
		"html_url": html, "url": url, "clone_url": html + ".git", "git_url": strings.Replace(html, "http://", "git://", 1) + ".git",
		"ssh_url": "git@127.0.0.1:" + r.fullName() + ".git", "svn_url": html, "mirror_url": nil, "homepage": nil, "language": nil, "license": nil,
		"default_branch": "main", "size": 0, "forks": 0, "forks_count": 0, "open_issues": 0, "open_issues_count": 0, "watchers": 0,
		"watchers_count": 0, "stargazers_count": 0, "network_count": 0, "subscribers_count": 0, "has_downloads": true, "has_issues": true,
		"has_projects": true, "has_wiki": true, "has_pages": false, "has_discussions": false, "is_template": false, "topics": []string{},
		"created_at": stamp(r.created), "updated_at": stamp(r.created), "pushed_at": stamp(r.created),
	}
	if r.description != "" {
		v["description"] = r.description
	}
	for _, path := range []string{
		"archive{/archive_format}{/ref}", "assignees{/user}", "branches{/branch}", "collaborators{/collaborator}", "comments{/number}",
		"commits{/sha}", "compare/{base}...{head}", "contents/{+path}", "contributors", "deployments", "downloads", "events", "forks",
		"hooks", "issues{/number}", "keys{/key_id}", "labels{/name}", "languages", "merges", "milestones{/number}",
		"notifications{?since,all,participating}", "pulls{/number}", "releases{/id}", "stargazers", "subscribers", "subscription", "tags", "teams",
	} {
		name := path[:strings.IndexAny(path+"{", "{/")]
		v[name+"_url"] = url + "/" + path
	}
	for name, path := range map[string]string{
		"blobs": "git/blobs{/sha}", "git_commits": "git/commits{/sha}", "git_refs": "git/refs{/sha}", "git_tags": "git/tags{/sha}",
		"issue_comment": "issues/comments{/number}", "issue_events": "issues/events{/number}", "statuses": "statuses/{sha}", "trees": "git/trees{/sha}",
	} {
		v[name+"_url"] = url + "/" + path
	}
	if permission != "" {
		v["permissions"] = permissions(permission)
	}
	return v
}

// permissions are the flags that a permission stands for.
func permissions(p string) object {
	return object{
		"admin": rank(p) >= rank("admin"), "maintain": rank(p) >= rank("maintain"), "push": rank(p) >= rank("write"),
		"triage": rank(p) >= rank("triage"), "pull": rank(p) >= rank("read"),
	}
}

// integration is an app.
func (s *Server) integration(w *world, a *app) object {
	installed := 0
	for _, i := range w.installations {
		if i.app == a {
			installed++
		}
	}
	return object{
		"id": a.id, "slug": a.slug, "node_id": nodeID("Integration", a.id), "client_id": a.clientID, "owner": s.simpleUser(a.owner),
		"name": a.name, "description": a.manifest.Description, "external_url": a.manifest.URL, "html_url": s.appURL(a),
		"created_at": stamp(a.created), "updated_at": stamp(a.created), "permissions": a.manifest.Permissions, "events": a.manifest.events(),
		"installations_count": installed,
	}
}

// appURL is an app's public page, where GitHub Enterprise has them.
func (s *Server) appURL(a *app) string { return s.URL + "/github-apps/" + a.slug }

func (s *Server) installation(i *installation) object {
	url := fmt.Sprintf("%s/app/installations/%d", s.API(), i.id)
	v := object{
		"id": i.id, "account": s.simpleUser(i.account), "app_id": i.app.id, "app_slug": i.app.slug, "client_id": i.app.clientID,
		"target_id": i.account.id, "target_type": i.account.kind(), "repository_selection": i.selection(), "single_file_name": nil,
		"has_multiple_single_files": false, "single_file_paths": []string{}, "access_tokens_url": url + "/access_tokens",
		"repositories_url": s.API() + "/installation/repositories", "html_url": s.manageURL(i), "events": i.app.manifest.events(),
		"permissions": i.permissions, "created_at": stamp(i.created), "updated_at": stamp(i.created), "suspended_at": nil, "suspended_by": nil,
	}
	if i.suspendedBy != nil {
		v["suspended_at"], v["suspended_by"] = stamp(i.suspendedAt), s.simpleUser(i.suspendedBy)
	}
	return v
}

func (i *installation) selection() string {
	if i.all {
		return "all"
	}
	return "selected"
}

// manageURL is where its owner configures an installation.
func (s *Server) manageURL(i *installation) string {
	if i.account.org {
		return fmt.Sprintf("%s/organizations/%s/settings/installations/%d", s.URL, i.account.login, i.id)
	}
	return fmt.Sprintf("%s/settings/installations/%d", s.URL, i.id)
}
