package web

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"satchel/auth/store"
	"satchel/internal/bytesize"
	"satchel/internal/space"
)

// Bounds of lists of pending files.
const (
	pendingShown    = 20
	pendingSecrets  = 5  // named of a file
	MaxFingerprints = 50 // allowed at once
)

// PendingList is the visitor's pending files in a space: those that could not be
// committed.
type PendingList struct {
	Files []PendingItem
	Count int
	More  int
	May   bool // allow what looks like a secret
	Done  string
}

// PendingItem is a pending file as pages show it.
type PendingItem struct {
	Key, Path, Size, Why string
	Since                time.Time
	Secrets              []space.PendingSecret
	MoreSecrets          int
	Prints               []string
	Allowed              bool
}

// PendingKey names a pending file in a form: its path may be any bytes, and a secret.
func PendingKey(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

// PendingList lists the visitor's pending files in a space; it is nil if there are none.
func (s *Site) PendingList(v *Visit, m store.Membership) (*PendingList, error) {
	n := s.PendingIn(v, m.ID)
	b := &PendingList{Count: n, May: m.Role != space.Reader}
	var list []space.PendingFile
	if n > 0 {
		var err error
		if list, err = s.Pending(v, m.ID, pendingShown); err != nil {
			return nil, err
		}
		list = list[:min(pendingShown, len(list))]
		b.More = max(0, n-len(list))
	}
	switch v.R.URL.Query().Get("held") {
	case "allowed":
		b.Done = "Allowed. The file is saved when an AI of yours next runs a command in this space."
	case "discarded":
		b.Done = "Discarded."
	}
	if n == 0 && b.Done == "" {
		return nil, nil
	}
	for _, f := range list {
		it := PendingItem{Key: PendingKey(f.Path), Path: ShownPath(f.Shown, 150), Size: bytesize.Text(f.Size), Why: Shorten(f.Why, 400), Since: f.Since, Allowed: f.Allowed}
		if it.Path == "" {
			it.Path = "a file without a name"
		}
		for i, x := range f.Secrets {
			if i < pendingSecrets {
				x.Description = Shorten(x.Description, 80)
				it.Secrets = append(it.Secrets, x)
			}
			if i < MaxFingerprints && !slices.Contains(it.Prints, x.Fingerprint) {
				it.Prints = append(it.Prints, x.Fingerprint)
			}
		}
		it.MoreSecrets = len(f.Secrets) - len(it.Secrets)
		b.Files = append(b.Files, it)
	}
	return b, nil
}
