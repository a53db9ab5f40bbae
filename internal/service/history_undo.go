package service

import (
	"context"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Limits of UndoClient.
const (
	maxUndoClient = 1000 // changes that one call undoes
	undoLooked    = 1000 // changes that it reads at a time
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
	// The span is from Since until before Until. A zero Until means now.
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
	commits, err := v.notUndone(ctx, in)
	if err != nil {
		return ClientUndone{}, err
	}
	if len(commits) == 0 {
		head, err := v.Head(ctx)
		return ClientUndone{Commit: space.Commit{ID: head}}, err
	}
	c, err := s.Revert(ctx, a, RevertInput{Space: in.Space, Commits: commits, Client: in.Client})
	return ClientUndone{Commit: c, Undone: len(commits)}, err
}

// notUndone returns the commits of the selected client that are not undone yet, newest first.
func (v View) notUndone(ctx context.Context, in UndoClientInput) (out []space.CommitID, err error) {
	undoings, err := v.logAll(ctx, space.LogQuery{Tool: space.ToolWebRevert, Since: in.Since})
	if err != nil {
		return nil, err
	}
	undone := UndoneBy(undoings)
	made, err := v.logAll(ctx, space.LogQuery{Client: in.Client, Tools: space.AITools(), Since: in.Since, Until: in.Until})
	if err != nil {
		return nil, err
	}
	for _, c := range made {
		if undone[c.ID.Short()] != "" {
			continue
		}
		if len(out) == maxUndoClient {
			return nil, fault.New(fault.TooLarge, "The client made more than %d changes in this time. Nothing was undone: choose a shorter time.", maxUndoClient)
		}
		out = append(out, c.ID)
	}
	return out, nil
}

// logAll is Log without a limit.
func (v View) logAll(ctx context.Context, q space.LogQuery) (all []space.Commit, err error) {
	for q.Limit = undoLooked; ; {
		list, err := v.Log(ctx, q)
		if err != nil {
			return nil, err
		}
		if all = append(all, list...); len(list) < q.Limit {
			return all, nil
		}
		q.After = list[len(list)-1].ID
	}
}
