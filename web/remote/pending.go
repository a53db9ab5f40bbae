package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// Limits of the list of pending files.
const (
	pendingShown    = 20
	pendingSecrets  = 5  // maximum number of secrets described for a file
	maxFingerprints = 50 // maximum number of secrets to allow at once
)

// pendingList holds the visitor's pending files in a space: files that could not be committed.
type pendingList struct {
	Files []pendingItem
	Count int
	More  int
	May   bool // the visitor may allow texts that look like secrets
	Done  string
}

// pendingItem is a pending file as a page shows it.
type pendingItem struct {
	Key, Path, Size, Why string
	Since                time.Time
	Secrets              []space.PendingSecret
	MoreSecrets          int
	Prints               []string
	Allowed              bool
}

// pendingKey returns a text that identifies a pending file in a form. The path itself
// is not used, because it can contain a secret, or bytes that are not text.
func pendingKey(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

// pendingList returns the visitor's pending files in a space. It returns nil if there are
// none, unless the visitor just allowed or discarded one.
func (s *pages) pendingList(v *web.Visit, m service.View) (*pendingList, error) {
	n := s.PendingIn(v, m.ID)
	b := &pendingList{Count: n, May: m.Role != space.Reader}
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
		b.Done = "Allowed. The file will be saved when one of your AIs next runs a command in this space."
	case "discarded":
		b.Done = "Discarded."
	}
	if n == 0 && b.Done == "" {
		return nil, nil
	}
	for _, f := range list {
		it := pendingItem{Key: pendingKey(f.Path), Path: web.ShownPath(f.Shown, 150), Size: bytesize.Text(f.Size), Why: web.Shorten(f.Why, 400), Since: f.Since, Allowed: f.Allowed}
		if it.Path == "" {
			it.Path = "a file without a name"
		}
		for i, x := range f.Secrets {
			if i < pendingSecrets {
				x.Description = web.Shorten(x.Description, 80)
				it.Secrets = append(it.Secrets, x)
			}
			if i < maxFingerprints && !slices.Contains(it.Prints, x.Fingerprint) {
				it.Prints = append(it.Prints, x.Fingerprint)
			}
		}
		it.MoreSecrets = len(f.Secrets) - len(it.Secrets)
		b.Files = append(b.Files, it)
	}
	return b, nil
}

// pendingFile returns the path of the pending file that the visitor's form identifies.
func (s *pages) pendingFile(v *web.Visit, m service.View) (string, error) {
	list, err := s.Pending(v, m.ID, 0)
	if err != nil {
		return "", err
	}
	key := v.R.PostFormValue("file")
	i := slices.IndexFunc(list, func(f space.PendingFile) bool { return f.Path != "" && pendingKey(f.Path) == key })
	if i < 0 {
		return "", errNotPending
	}
	return list[i].Path, nil
}

var errNotPending = fault.New(fault.NotFound, "This file is no longer waiting: it was saved, deleted or discarded meanwhile.")

// allowSecrets handles POST /spaces/{id}/held/allow.
func (s *pages) allowSecrets(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	path, err := s.pendingFile(v, m)
	if err != nil {
		return err
	}
	prints := strings.Fields(v.R.PostFormValue("secrets"))
	if len(prints) > maxFingerprints {
		prints = prints[:maxFingerprints]
	}
	in := service.AllowPendingSecretsInput{Space: service.SpaceRef{ID: m.ID}, Path: path, Fingerprints: prints}
	if _, err := s.Service.AllowPendingSecrets(v.R.Context(), v.Actor(), in); err != nil {
		return err
	}
	return s.See(v, web.SpacePath(m.ID, "remote?held=allowed#held"))
}

// discardPending handles POST /spaces/{id}/held/discard. A visitor who can no longer write
// to the space may still discard their own file.
func (s *pages) discardPending(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	path, err := s.pendingFile(v, m)
	if err != nil {
		return err
	}
	in := service.DiscardPendingFileInput{Space: service.SpaceRef{ID: m.ID}, Path: path}
	if _, err := s.Service.DiscardPendingFile(v.R.Context(), v.Actor(), in); err != nil {
		if fault.CodeOf(err) == fault.NotFound {
			return errNotPending
		}
		return err
	}
	return s.See(v, web.SpacePath(m.ID, "remote?held=discarded#held"))
}
