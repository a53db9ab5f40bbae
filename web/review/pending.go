package review

import (
	"slices"
	"strings"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// pendingFile returns the path of the visitor's pending file that a form names.
func (s *pages) pendingFile(v *web.Visit, m store.Membership) (string, error) {
	list, err := s.Pending(v, m.ID, 0)
	if err != nil {
		return "", err
	}
	key := v.R.PostFormValue("file")
	i := slices.IndexFunc(list, func(f space.PendingFile) bool { return f.Path != "" && web.PendingKey(f.Path) == key })
	if i < 0 {
		return "", errNotPending
	}
	return list[i].Path, nil
}

var errNotPending = fault.New(fault.NotFound, "This file is held no more: it was saved, deleted or discarded meanwhile.")

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
	if len(prints) > web.MaxFingerprints {
		prints = prints[:web.MaxFingerprints]
	}
	in := service.AllowPendingSecretsInput{Space: service.SpaceRef{ID: m.ID}, Path: path, Fingerprints: prints}
	if _, err := s.Operations.AllowPendingSecrets(v.R.Context(), v.Actor(), in); err != nil {
		return err
	}
	return s.See(v, web.SpacePath(m.ID, "remote?held=allowed#held"))
}

// discardPending handles POST /spaces/{id}/held/discard. A visitor who can no longer
// write to the space may still discard their own file.
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
	if _, err := s.Operations.DiscardPendingFile(v.R.Context(), v.Actor(), in); err != nil {
		if fault.CodeOf(err) == fault.NotFound {
			return errNotPending
		}
		return err
	}
	return s.See(v, web.SpacePath(m.ID, "remote?held=discarded#held"))
}
