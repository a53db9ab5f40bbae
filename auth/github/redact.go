package github

import "regexp"

const (
	// maxError bounds, in bytes, what is kept of a text of GitHub's.
	maxError = 500
	// maxErrorBody bounds, in bytes, what Redact looks at.
	maxErrorBody = 64 << 10
)

// secretText is what looks like a token of GitHub (their forms are gho_, ghu_, ghs_,
// ghr_, ghp_ and github_pat_), a signed assertion, or a private key.
var secretText = regexp.MustCompile(`gh[a-z]_[A-Za-z0-9_.-]+|github_pat_[A-Za-z0-9_]+|eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_.-]+|(?s)-----BEGIN.*`)

// Redact cuts a text of GitHub's, for the log, to 500 bytes and takes out what looks
// like a secret, first, so that the cut leaves no half of one.
func Redact(s string) string {
	s = secretText.ReplaceAllString(s[:min(len(s), maxErrorBody)], "[secret]")
	return cut(s, maxError)
}

func cut(s string, n int) string { return s[:min(len(s), n)] }
