package store

import (
	"crypto/rand"
	"strings"
	"unicode"
	"unicode/utf8"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// newID returns a fresh random id of 128 bits.
func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

func hashOf(s auth.Secret) []byte {
	h := s.Hash()
	return h[:]
}

// parseHash returns the hash of a secret. ok is false if s is not a secret of the kind.
func parseHash(k auth.Kind, s string) (hash []byte, ok bool) {
	secret, _, err := auth.ParseSecret(k, s)
	if err != nil {
		return nil, false
	}
	return hashOf(secret), true
}

// lockUsers keeps other PostgreSQL transactions from changing any user until this one ends.
// Reads and lockUser are still possible. A transaction that changes a user takes this lock
// first, to avoid deadlocks. SQLite runs only one writing transaction at a time.
func (s *Store) lockUsers(tx *gorm.DB) error {
	if s.db.Kind() != database.Postgres {
		return nil
	}
	return wrap("lock users", tx.Exec("LOCK TABLE auth_users IN SHARE ROW EXCLUSIVE MODE").Error)
}

// lockActive calls lockUser for an operation that is forbidden to a suspended user.
func (s *Store) lockActive(tx *gorm.DB, id space.UserID) (userRow, error) {
	u, err := lockUser(tx, s.db.Kind(), id)
	if err == nil && u.Suspended != 0 {
		return u, errSuspended(u.Name)
	}
	return u, err
}

func errSuspended(name string) error {
	return fault.New(fault.Forbidden, "%s can no longer use this server, because no entry of the allow list admits them.", name)
}

// storable reports whether PostgreSQL can store and look up the text.
func storable(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// lookup returns a stranger's text for a query. If PostgreSQL cannot store the text, lookup
// returns a text that no row contains.
func lookup[T ~string](s T) string {
	if storable(string(s)) {
		return string(s)
	}
	return string(unicode.ReplacementChar)
}

// clean removes the characters from a stranger's text that cannot be displayed, and
// shortens the text to n bytes.
func clean(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, strings.TrimSpace(s[:min(len(s), 4*n)]))
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

// lowerASCII changes only ASCII letters to lower case. Unicode's rules would turn the
// Kelvin sign into a k, and so one address into another.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
