package auth

import (
	"slices"
	"strings"
)

// ExternalIdentity describes a person as their identity provider knows them. An empty field
// is unknown.
type ExternalIdentity struct {
	Issuer, Subject string
	// Email is set only if the provider has verified it.
	Email       string
	Name        string   // the person's full name
	Login       string   // the provider's name for the account, such as a GitHub login
	GitHubLogin string   // set only by GitHub's sign-in
	GitHubOrgs  []string // organizations in which GitHub reports an active membership
}

// AllowList lists the people who can become users without an invitation. All
// comparisons ignore the case of ASCII letters.
type AllowList struct {
	Emails      []string // whole addresses
	Domains     []string // domains of addresses
	GitHubUsers []string // logins
	GitHubOrgs  []string
}

// Admits returns the entry that admits a person, such as "domain:example.com". ok is false
// if no entry does.
func (a AllowList) Admits(c ExternalIdentity) (entry string, ok bool) {
	email := strings.TrimSpace(c.Email)
	_, domain, _ := cutLast(email, '@')
	candidates := []string{"email:" + email, "domain:" + domain, "github:" + c.GitHubLogin}
	for _, o := range c.GitHubOrgs {
		candidates = append(candidates, "org:"+o)
	}
	for _, e := range candidates {
		if a.Has(e) {
			return lower(e), true
		}
	}
	return "", false
}

// Has reports whether the list has an entry in the form that Admits returns.
func (a AllowList) Has(entry string) bool {
	kind, value, _ := strings.Cut(entry, ":")
	if value == "" {
		return false
	}
	var list []string
	switch kind {
	case "email":
		list = a.Emails
	case "domain":
		list = a.Domains
	case "github":
		list = a.GitHubUsers
	case "org":
		list = a.GitHubOrgs
	}
	value = lower(value)
	return slices.ContainsFunc(list, func(s string) bool { return lower(strings.TrimSpace(s)) == value })
}

// lower changes only ASCII letters to lower case. Unicode's rules would change the Kelvin
// sign to k, and so match a different domain.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

func cutLast(s string, sep byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}
