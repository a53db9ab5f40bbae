package auth

import (
	"slices"
	"strings"
)

// ExternalIdentity is a person as an identity provider knows them. An empty field is
// unknown.
type ExternalIdentity struct {
	Issuer, Subject string
	// Email is set only if the provider says that it is verified.
	Email       string
	Name        string   // how a person would write it
	Login       string   // what the provider calls them, such as a GitHub login
	GitHubLogin string   // set by GitHub's sign-in alone
	GitHubOrgs  []string // organisations of which GitHub says that they are an active member
}

// AllowList lists the people who can become users without an invitation. All
// comparisons ignore the case of ASCII letters.
type AllowList struct {
	Emails      []string // whole addresses
	Domains     []string // of addresses
	GitHubUsers []string // logins
	GitHubOrgs  []string
}

// Admits returns the entry that admits a person, such as "domain:example.com";
// ok is false if none does.
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

// lower lowers ASCII letters alone: under Unicode's rules the Kelvin sign is a k,
// and a domain that has one is another domain.
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
