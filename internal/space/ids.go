package space

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"strings"

	"satchel/internal/fault"
)

// UserID identifies a user. It is random and never reused.
type UserID string

// SpaceID identifies a space. It is safe as a file name, and never changes.
type SpaceID string

// GrantID identifies a grant.
type GrantID string

// CommitID is a commit's object name: 40 lower-case hexadecimal digits.
type CommitID string

// BlobID is the object name of a file's content: 40 lower-case hexadecimal digits. It is
// the etag of a file. An empty BlobID means that there was no file.
type BlobID string

const shortCommit = 10

// Short returns the first 10 digits, for people to read.
func (c CommitID) Short() string {
	return string(c[:min(len(c), shortCommit)])
}

// Valid reports whether c is a well-formed commit id.
func (c CommitID) Valid() bool { return isHex40(string(c)) }

// Valid reports whether b is a well-formed blob id.
func (b BlobID) Valid() bool { return isHex40(string(b)) }

func isHex40(s string) bool { return len(s) == 40 && isHex(s) }

func isHex(s string) bool {
	for i := range len(s) {
		if !(s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'f') {
			return false
		}
	}
	return true
}

// NewUserID returns a fresh random user id of 128 bits.
func NewUserID() UserID { return UserID(newID("u_")) }

// NewSpaceID returns a fresh random space id.
func NewSpaceID() SpaceID { return SpaceID(newID("s_")) }

// NewGrantID returns a fresh random grant id.
func NewGrantID() GrantID { return GrantID(newID("g_")) }

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func newID(prefix string) string {
	var b [16]byte
	rand.Read(b[:]) // never fails: without entropy, crypto/rand.Read ends the program
	return prefix + idEncoding.EncodeToString(b[:])
}

// ParseSpaceID checks that s is a well-formed space id, so that it can be used as a file
// name. The error is a fault.Invalid.
func ParseSpaceID(s string) (SpaceID, error) {
	rest, ok := strings.CutPrefix(s, "s_")
	if ok {
		// The decoder skips line ends and ignores the unused bits of the last digit.
		// Encoding the result again ensures that a space has only one id.
		if b, err := idEncoding.DecodeString(rest); err == nil && len(b) == 16 && idEncoding.EncodeToString(b) == rest {
			return SpaceID(s), nil
		}
	}
	return "", fault.New(fault.Invalid, "%s is not a space id.", quoteShort(s))
}

func quoteShort(s string) string {
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return fmt.Sprintf("%q", s)
}
