package secretscan

import (
	"crypto/sha256"
	"encoding/hex"
)

// Finding is a secret in a content. It holds where the secret is, not what it
// is.
type Finding struct {
	Rule        string // the rule's id, as "aws-access-token"
	Description string // what the rule finds, in a few words for people
	Line        int    // where the secret begins, from 1
	Column      int    // bytes from the line's beginning, from 1
	Start, End  int    // the secret's bytes in the content
	// Fingerprint names the secret by a hash of it: 20 hexadecimal digits. The
	// same secret has the same fingerprint at every place.
	Fingerprint string
}

// fingerprint hashes a secret without its white space, so that a key that is
// wrapped or indented otherwise is the same one.
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

// Redacted replaces a secret in a content, in UTF-16 where that is.
const Redacted = "[secret removed]"

// Redact returns the content with Redacted in the place of each finding, which
// must be Scan's for this content. Without a finding it returns the content
// itself, else a copy.
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
