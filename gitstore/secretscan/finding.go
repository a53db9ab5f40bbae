package secretscan

import (
	"crypto/sha256"
	"encoding/hex"
)

// Finding is the place of a secret in a content. It does not contain the secret.
type Finding struct {
	Rule        string // the rule's ID, such as "aws-access-token"
	Description string // what the rule finds, in a few words for people
	Line        int    // where the secret begins, from 1
	Column      int    // the secret's first byte in the line, counted from 1
	Start, End  int    // the secret's bytes in the content
	// Fingerprint is a hash of the secret, of 20 hexadecimal digits. It is the same
	// wherever the secret occurs.
	Fingerprint string
}

// fingerprint hashes a secret without its white space, so that wrapping and indentation do
// not matter.
func fingerprint(secret []byte) string {
	h := sha256.New()
	h.Write([]byte("satchel secret\x00"))
	start := 0
	for i, c := range secret {
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			h.Write(secret[start:i])
			start = i + 1
		}
	}
	h.Write(secret[start:])
	return hex.EncodeToString(h.Sum(nil)[:10])
}

// Redacted replaces a secret in a content. In UTF-16 content it is written as UTF-16.
const Redacted = "[secret removed]"

// Redact returns a copy of the content with Redacted in place of each finding, or the
// content itself if there are no findings. The findings must come from Scan of the same
// content.
func Redact(content []byte, findings []Finding) []byte {
	if len(findings) == 0 {
		return content
	}
	mark := []byte(Redacted)
	if w, ok := wideText(content); ok {
		mark = w.widen(Redacted)
	}
	out := make([]byte, 0, len(content))
	at := 0
	for _, f := range findings {
		if f.Start < at || f.End < f.Start || f.End > len(content) {
			continue
		}
		out = append(out, content[at:f.Start]...)
		out = append(out, mark...)
		at = f.End
	}
	return append(out, content[at:]...)
}
