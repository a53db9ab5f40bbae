package upstream

import (
	"net/url"
	"strings"
)

// Push is a push to a branch of a repository, as a git server reports it.
type Push struct {
	// Repository is the address of the repository, such as https://github.com/nuxt/nuxt.
	Repository string
	// Branch is empty if the report names none.
	Branch string
	// Default reports whether Branch is the default branch.
	Default bool
}

// Follows reports whether an upstream has files of the branch to which somebody pushed. It may
// report true although no file has changed.
func Follows(u Upstream, p Push) bool {
	on := func(address, branch string) bool {
		same := branch == p.Branch || branch == "" && p.Default || p.Branch == ""
		return same && repositoryOf(address) != "" && repositoryOf(address) == repositoryOf(p.Repository)
	}
	switch u := u.(type) {
	case *git:
		return on(u.URL, u.Branch)
	case *gitHub:
		for r := range u.all() {
			if on("https://"+u.Host+"/"+r.Repo, r.Branch) {
				return true
			}
		}
	}
	return false
}

// repositoryOf returns the host and the path of a repository's address in a form that can be
// compared. It returns "" if the address has no host.
func repositoryOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return strings.ToLower(u.Host + "/" + strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git"))
}
