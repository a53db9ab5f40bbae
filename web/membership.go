package web

import (
	"cmp"
	"context"
	"net/url"
	"path"
	"slices"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// Spaces returns the visitor's spaces, their own first.
func (s *Site) Spaces(v *Visit) ([]service.View, error) {
	if v.spaces == nil {
		all, err := s.Service.OpenSpaces(v.R.Context(), v.Actor(), service.None{})
		if err != nil {
			return nil, err
		}
		v.spaces = all
	}
	return v.spaces, nil
}

// Space returns the space whose ID is in the path. If the visitor is not a member, it returns
// ErrGone.
func (s *Site) Space(v *Visit) (service.View, error) {
	id := space.SpaceID(v.R.PathValue("id"))
	all, err := s.Spaces(v)
	if err != nil {
		return service.View{}, err
	}
	if i := slices.IndexFunc(all, func(m service.View) bool { return m.ID == id }); i >= 0 {
		return all[i], nil
	}
	return service.View{}, ErrGone
}

// WritableSpace is like Space, but returns an error if the visitor may only read the space.
func (s *Site) WritableSpace(v *Visit) (service.View, error) {
	m, err := s.Space(v)
	if err == nil && m.Role == space.Reader {
		return m, fault.New(fault.Forbidden, "You may only read the space %s. Its owner can let you change it.", m.Name)
	}
	return m, err
}

// OwnedSpace is like Space, but returns an error if the visitor does not own the space.
func (s *Site) OwnedSpace(v *Visit) (service.View, error) {
	m, err := s.Space(v)
	if err == nil && m.Role != space.Owner {
		return service.View{}, fault.New(fault.Forbidden, "Only the owner of the space %s can do that.", m.Name)
	}
	return m, err
}

// Waiting returns how many files of a space wait for the visitor's review. It is 0 for
// readers.
func Waiting(ctx context.Context, m *service.View) int {
	if m == nil || !m.CanWrite() {
		return 0
	}
	known, err := m.Reviews(ctx)
	if err != nil {
		return 0 // pages that only show the number do without it
	}
	return len(known.Waiting)
}

// ReviewsIn lists the changes of a space that wait for review. Files that instruct every
// client come first, so that other files cannot hide them. Among equally urgent files, changed
// files come before new ones. behind reports that the history is still being read.
func ReviewsIn(ctx context.Context, m service.View) (list []space.Review, behind bool, err error) {
	known, err := m.Reviews(ctx)
	if err != nil {
		return nil, false, err
	}
	list = slices.Clone(known.Waiting)
	slices.SortStableFunc(list, func(a, b space.Review) int {
		return cmp.Or(cmp.Compare(urgency(a.Path), urgency(b.Path)), cmp.Compare(number(a.Was == ""), number(b.Was == "")), cmp.Compare(a.Path, b.Path))
	})
	return list, known.Behind, nil
}

// urgency is 0 for files that clients receive without asking, and higher for files that
// they look up.
func urgency(p space.Path) int {
	switch {
	case p == "resources/instructions.md" || p == "resources/context.md" || p == "resources" || p == "skills":
		return 0
	case path.Base(string(p)) == "SKILL.md":
		return 1
	}
	return 2
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Pending lists the visitor's pending files in a space: files that could not be committed. It looks
// for secrets in the first inspect files.
func (s *Site) Pending(v *Visit, id space.SpaceID, inspect int) ([]space.PendingFile, error) {
	return s.Service.ListPendingFiles(v.R.Context(), v.Actor(), service.ListPendingFilesInput{Space: service.SpaceRef{ID: id}, Inspect: inspect})
}

// PendingIn counts the visitor's pending files in a space. It returns -1 if they cannot be
// read, so that no page claims that there are none.
func (s *Site) PendingIn(v *Visit, id space.SpaceID) int {
	all, err := s.Pending(v, id, 0)
	if err != nil {
		s.Logger.WarnContext(v.R.Context(), "pending files cannot be read", "space", id, "err", err)
		return -1
	}
	return len(all)
}

// JoinedIn returns a function that reports whether the visitor has just joined a space,
// according to the query.
func JoinedIn(q url.Values) func(service.View) bool {
	return func(m service.View) bool { return m.Role != space.Owner && string(m.ID) == q.Get("joined") }
}
