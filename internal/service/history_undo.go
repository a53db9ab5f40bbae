package service

import (
	"context"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// maxUndoClient limits the changes that one call of UndoClient undoes.
const maxUndoClient = 1000

// NotUndone reads undoLooked changes at a time, undoTurns times at most.
const (
	undoLooked = 1000
	undoTurns  = 5
)

// UndoneBy maps the short ids of undone commits to the commits that undid them completely. The
// input lists commits, newest first. UndoneBy trusts only commits that a person made on the
// pages to undo others. A commit that was itself undone undoes nothing.
func UndoneBy(newest []space.Commit) map[string]space.CommitID {
	// gitstore.Store.Revert writes these texts.
	const one, many = "This undoes the commit ", "This undoes the commits:\n"
	out := map[string]space.CommitID{}
	for _, c := range newest {
		if c.Tool != space.ToolWebRevert || out[c.ID.Short()] != "" {
			continue
		}
		_, body, _ := strings.Cut(c.Message, "\n\n")
		if rest, ok := strings.CutPrefix(body, one); ok {
			id, _, _ := strings.Cut(rest, ".")
			out[id] = c.ID
			continue
		}
		list, ok := strings.CutPrefix(body, many)
		if !ok {
			continue
		}
		for line := range strings.Lines(list) {
			if id, _, ok := strings.Cut(line, " "); ok {
				out[id] = c.ID
			}
		}
	}
	delete(out, "")
	return out
}

// UndoClientInput selects the changes of a client in a time span.
type UndoClientInput struct {
	Space  SpaceRef `json:"space"`
	Client string   `json:"client"` // with or without its version
	// Author selects the changes that the client made for the person with this name. Empty
	// selects the changes for everybody.
	Author string `json:"author,omitempty"`
	// The span begins at Since and ends before Until. A zero Until means now.
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
}

// ClientUndone is the result of UndoClient. The Conflicts of the commit name the files that were
// left unchanged because somebody has changed them since.
type ClientUndone struct {
	space.Commit
	// Undone counts the changes that the commit undoes, completely or in part.
	Undone int `json:"undone"`
}

// UndoClient undoes what a client changed in a time span, in one new commit. It leaves out
// changes that are undone already, and changes by people. Undoing the new commit brings
// everything back.
func (s *Service) UndoClient(ctx context.Context, a Actor, in UndoClientInput) (ClientUndone, error) {
	v, err := s.open(ctx, a, "UndoClient", in.Space)
	if err != nil {
		return ClientUndone{}, err
	}
	switch {
	case in.Client == "" || in.Since.IsZero():
		return ClientUndone{}, fault.New(fault.Invalid, "Choose a client, and the time since when to undo its changes.")
	case !in.Until.IsZero() && !in.Since.Before(in.Until):
		return ClientUndone{}, fault.New(fault.Invalid, "The time span ends before it begins. Choose a later end.")
	}
	page, err := v.NotUndone(ctx, in, "", maxUndoClient)
	switch {
	case err != nil:
		return ClientUndone{}, err
	case page.More != "":
		return ClientUndone{}, fault.New(fault.TooLarge, "The client made more than %d changes in this time. Nothing was undone: choose a shorter time.", maxUndoClient)
	case len(page.Commits) == 0:
		head, err := v.Head(ctx)
		return ClientUndone{Commit: space.Commit{ID: head}}, err
	}
	commits := make([]space.CommitID, len(page.Commits))
	for i, c := range page.Commits {
		commits[i] = c.ID
	}
	c, err := s.Revert(ctx, a, RevertInput{Space: in.Space, Commits: commits})
	return ClientUndone{Commit: c, Undone: len(commits)}, err
}

// NotUndonePage is a page of changes that are not undone yet, newest first.
type NotUndonePage struct {
	Commits []space.Commit
	More    space.CommitID // the commit to continue after; "" if there are no more changes
	Skipped int            // number of changes that were left out because they are undone
}

// NotUndone lists the changes of the selected client that are not undone yet, starting after a
// commit. most is the maximum number of changes in the page.
func (v View) NotUndone(ctx context.Context, in UndoClientInput, after space.CommitID, most int) (page NotUndonePage, err error) {
	undoings, err := v.Log(ctx, space.LogQuery{Tool: space.ToolWebRevert, Since: in.Since, Limit: undoLooked})
	if err != nil {
		return page, err
	}
	undone := UndoneBy(undoings)
	for range undoTurns {
		found, err := v.Log(ctx, space.LogQuery{Client: in.Client, Author: in.Author, Tools: space.AITools(), Since: in.Since, Until: in.Until, After: after, Limit: undoLooked})
		if err != nil {
			return page, err
		}
		for _, c := range found {
			switch {
			case undone[c.ID.Short()] != "":
				page.Skipped++
			case len(page.Commits) == most:
				page.More = after
				return page, nil
			default:
				page.Commits = append(page.Commits, c)
			}
			after = c.ID
		}
		if len(found) < undoLooked {
			return page, nil
		}
	}
	page.More = after
	return page, nil
}
