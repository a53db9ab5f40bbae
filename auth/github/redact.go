package github

import "regexp"

const (
	// maxError is the maximum size in bytes of a text from GitHub in a log.
	maxError = 500
	// maxErrorBody is the maximum size in bytes of the text that Redact reads.
	maxErrorBody = 64 << 10
)

// secretText matches texts that look like a token of GitHub (gho_, ghu_, ghs_, ghr_, ghp_
// or github_pat_), a signed assertion, or a private key.
var secretText = regexp.MustCompile(`gh[a-z]_[A-Za-z0-9_.-]+|github_pat_[A-Za-z0-9_]+|eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_.-]+|(?s)-----BEGIN.*`)

// Redact shortens a text from GitHub to 500 bytes for the log, and removes everything that
// looks like a secret. It removes secrets first, so that the shortened text contains no
// part of one.
func Redact(s string) string {
	s = secretText.ReplaceAllString(s[:min(len(s), maxErrorBody)], "[secret]")
	return cut(s, maxError)
}

func cut(s string, n int) string { return s[:min(len(s), n)] }
