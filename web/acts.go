package web

import (
	"context"
	"slices"
	"strings"

	"satchel/internal/space"
)

// What acts on these pages name as their tool in commits. A person had the whole
// content before them that byHand writes; what the others bring back or move nobody
// was shown, so that it confirms nothing that an AI changed.
const (
	byHand    = "web"
	byRevert  = "web-revert"
	byRestore = "web-restore"
	byMove    = "web-move"
	byUndo    = "web-undo"
)

// pageTools are all of them.
func pageTools() []string { return []string{byHand, byRevert, byRestore, byMove, byUndo} }

// believed returns commits with what can be believed of what they say of themselves.
// That an AI made one is: nobody gains by it, and it is looked at as such.
func (s *Server) believed(ctx context.Context, id space.SpaceID, list []space.Commit) ([]space.Commit, error) {
	var claim []space.CommitID
	for _, c := range list {
		if claims(c) {
			claim = append(claim, c.ID)
		}
	}
	if len(claim) == 0 {
		return list, nil
	}
	made, err := s.o.History.MadeOf(ctx, id, claim)
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	for i, c := range list {
		if claims(c) && !made[c.ID] {
			list[i].Tool, list[i].Client = space.Elsewhere, ""
		}
	}
	return list, nil
}

func claims(c space.Commit) bool { return space.MadeHere(c.Tool) }

// commits lists commits, with what can be believed of what they say.
func (s *Server) commits(ctx context.Context, id space.SpaceID, q LogQuery) ([]space.Commit, error) {
	list, err := s.o.History.Log(ctx, id, q)
	if err != nil {
		return nil, err
	}
	return s.believed(ctx, id, list)
}

// commitsPage is commits of History.LogPage.
func (s *Server) commitsPage(ctx context.Context, id space.SpaceID, at space.CommitID, path space.Path, cursor string, limit, walk int) ([]space.Commit, string, error) {
	list, next, err := s.o.History.LogPage(ctx, id, at, path, cursor, limit, walk)
	if err == nil {
		list, err = s.believed(ctx, id, list)
	}
	return list, next, err
}

// byPage tells whether a commit was made on these pages.
func byPage(tool string) bool { return tool == byHand || strings.HasPrefix(tool, byHand+"-") }
