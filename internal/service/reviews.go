package service

import (
	"context"
	"slices"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Reviews are the changes in a space that wait for a person's decision.
type Reviews struct {
	Waiting []space.Review `json:"waiting"` // sorted by path; callers must not modify it
	// Behind reports that Waiting may be incomplete, because the history is still being
	// read.
	Behind bool `json:"behind"`
}

// Reviews returns the known reviews of the space. It does not wait for the history.
func (v View) Reviews(ctx context.Context) (r Reviews, err error) {
	r.Waiting, r.Behind, err = v.s.reviews.Waiting(ctx, v.ID)
	return r, err
}

// ListReviewDecisionsInput names a space.
type ListReviewDecisionsInput struct {
	Space SpaceRef `json:"space"`
	Limit int      `json:"limit"`
}

// ListReviewDecisions lists the latest decisions, newest first.
func (s *Service) ListReviewDecisions(ctx context.Context, a Actor, in ListReviewDecisionsInput) ([]space.ReviewDecision, error) {
	m, err := s.authorizeSpace(ctx, a, "ListReviewDecisions", in.Space)
	if err != nil {
		return nil, err
	}
	list, err := s.reviews.Decisions(ctx, m.ID, in.Limit)
	if err != nil || len(list) == 0 {
		return list, err
	}
	var people []space.UserID
	for _, d := range list {
		people = append(people, d.By)
	}
	slices.Sort(people)
	names, err := s.accounts.UserNames(ctx, slices.Compact(people)...)
	if err != nil {
		return nil, err
	}
	for i, d := range list {
		if n := names[d.By]; !n.Removed {
			list[i].Who = n.Name
		}
	}
	return list, nil
}

// DecideReviewInput names the version of a file that the actor saw. If the file has
// another version now, the error is a fault.Conflict.
type DecideReviewInput struct {
	Space SpaceRef     `json:"space"`
	Path  space.Path   `json:"path"`
	Blob  space.BlobID `json:"blob"` // empty: the file was deleted
	Mode  space.Mode   `json:"mode"`
}

// KeepReview accepts a change, which then no longer waits for review.
func (s *Service) KeepReview(ctx context.Context, a Actor, in DecideReviewInput) (None, error) {
	m, err := s.authorizeSpace(ctx, a, "KeepReview", in.Space)
	if err != nil {
		return None{}, err
	}
	if err := s.reviews.Keep(ctx, m.ID, a.user, in.Path, in.Blob, in.Mode); err != nil {
		return None{}, err
	}
	s.record(ctx, a, "review.keep", string(m.ID), map[string]any{"path": in.Path, "blob": in.Blob})
	return None{}, nil
}

// UndoReview restores the last version that a person knew, in a new commit.
func (s *Service) UndoReview(ctx context.Context, a Actor, in DecideReviewInput) (space.Commit, error) {
	m, err := s.authorizeSpace(ctx, a, "UndoReview", in.Space)
	if err != nil {
		return space.Commit{}, err
	}
	if _, err := space.ParsePath(string(in.Path)); err != nil {
		return space.Commit{}, fault.Wrap(err, fault.Invalid, "%s", fault.PublicOf(err))
	}
	c, err := s.reviews.Undo(ctx, m.ID, a.user, in.Path, in.Blob, in.Mode, a.commitMeta("undo", "Undo what an AI changed in "+string(in.Path)))
	if err != nil {
		return space.Commit{}, err
	}
	s.record(ctx, a, "review.undo", string(m.ID), map[string]any{"path": in.Path, "blob": in.Blob, "commit": c.ID})
	return c, nil
}
