package web

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// routeHeld adds what becomes of held files.
func (s *Site) routeHeld() {
	s.Handle("POST /spaces/{id}/held/allow", LimitPage, SignedIn, s.allowHeld)
	s.Handle("POST /spaces/{id}/held/discard", LimitPage, SignedIn, s.discardHeld)
}

// Bounds of lists of held files.
const (
	heldShown   = 20
	heldSecrets = 5  // named of a file
	heldPrints  = 50 // allowed at once
)

// heldBody is what is held for the visitor, as the page of a space's remote has it.
type heldBody struct {
	Files []heldItem
	Count int
	More  int
	May   bool // allow what looks like a secret
	Done  string
}

type heldItem struct {
	Key, Path, Size, Why string
	Since                time.Time
	Secrets              []space.PendingSecret
	MoreSecrets          int
	Prints               []string
	Allowed              bool
}

// heldKey names a held file in a form: its path may be any bytes, and a secret.
func heldKey(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

// heldOf is what is held for the visitor in a space; nil for nothing.
func (s *Site) heldOf(v *Visit, m store.Membership) (*heldBody, error) {
	n := s.HeldIn(v, m.ID)
	b := &heldBody{Count: n, May: m.Role != space.Reader}
	var list []space.PendingFile
	if n > 0 {
		var err error
		if list, err = s.pending(v, m.ID, heldShown); err != nil {
			return nil, err
		}
		list = list[:min(heldShown, len(list))]
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
		it := heldItem{Key: heldKey(f.Path), Path: ShownPath(f.Shown, 150), Size: bytesize.Text(f.Size), Why: Shorten(f.Why, 400), Since: f.Since, Allowed: f.Allowed}
		if it.Path == "" {
			it.Path = "a file without a name"
		}
		for i, x := range f.Secrets {
			if i < heldSecrets {
				x.Description = Shorten(x.Description, 80)
				it.Secrets = append(it.Secrets, x)
			}
			if i < heldPrints && !slices.Contains(it.Prints, x.Fingerprint) {
				it.Prints = append(it.Prints, x.Fingerprint)
			}
		}
		it.MoreSecrets = len(f.Secrets) - len(it.Secrets)
		b.Files = append(b.Files, it)
	}
	return b, nil
}

// heldFile is the file of the visitor's that a form names.
func (s *Site) heldFile(v *Visit, m store.Membership) (string, error) {
	list, err := s.pending(v, m.ID, 0)
	if err != nil {
		return "", err
	}
	key := v.R.PostFormValue("file")
	i := slices.IndexFunc(list, func(f space.PendingFile) bool { return f.Path != "" && heldKey(f.Path) == key })
	if i < 0 {
		return "", errHeldGone
	}
	return list[i].Path, nil
}

var errHeldGone = fault.New(fault.NotFound, "This file is held no more: it was saved, deleted or discarded meanwhile.")

// allowHeld is POST /spaces/{id}/held/allow.
func (s *Site) allowHeld(v *Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	path, err := s.heldFile(v, m)
	if err != nil {
		return err
	}
	prints := strings.Fields(v.R.PostFormValue("secrets"))
	if len(prints) > heldPrints {
		prints = prints[:heldPrints]
	}
	in := service.AllowPendingSecretsInput{Space: service.SpaceRef{ID: m.ID}, Path: path, Fingerprints: prints}
	if _, err := s.Operations.AllowPendingSecrets(v.R.Context(), v.Actor(), in); err != nil {
		return err
	}
	return s.See(v, SpacePath(m.ID, "remote?held=allowed#held"))
}

// discardHeld is POST /spaces/{id}/held/discard. What is held is the visitor's own,
// so that one who may only read the space any more may do it too.
func (s *Site) discardHeld(v *Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	path, err := s.heldFile(v, m)
	if err != nil {
		return err
	}
	in := service.DiscardPendingFileInput{Space: service.SpaceRef{ID: m.ID}, Path: path}
	if _, err := s.Operations.DiscardPendingFile(v.R.Context(), v.Actor(), in); err != nil {
		if fault.CodeOf(err) == fault.NotFound {
			return errHeldGone
		}
		return err
	}
	return s.See(v, SpacePath(m.ID, "remote?held=discarded#held"))
}
