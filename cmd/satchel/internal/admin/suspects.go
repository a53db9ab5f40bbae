package admin

import (
	"context"
	"strings"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/secretscan"
	"satchel/internal/space"
)

// Bounds of a look for suspects.
const (
	// DefaultSuspectTime is how long it lasts at most.
	DefaultSuspectTime = time.Second
	maxSuspects        = 20 // places that are named
)

// Suspect is a place that may be a password that somebody uses. What it is, nobody is
// told.
type Suspect struct {
	Path space.Path `json:"path"`
	Line int        `json:"line"`
}

// Suspected is what a look through the files of a space found.
type Suspected struct {
	Places []Suspect `json:"places"`
	More   int       `json:"more,omitempty"`
	// Partly tells that not all files were looked at.
	Partly bool `json:"partly,omitempty"`
}

// SuspectsIn looks through what a space holds now, for warnings before it is sent to
// where others may read it. It ends after the time within, 0 for the default, with
// what it has found. What has the form of a known secret is left out where it is
// refused anyway.
func SuspectsIn(ctx context.Context, git *gitstore.Store, scan *secretscan.Scanner, id space.SpaceID, known bool, within time.Duration) (Suspected, error) {
	if within == 0 {
		within = DefaultSuspectTime
	}
	look, stop := context.WithTimeout(ctx, within)
	defer stop()
	var out Suspected
	// Who asked may be gone, and then there is nobody to warn.
	over := func(err error) (Suspected, error) {
		if ctx.Err() != nil || look.Err() == nil {
			return Suspected{}, err
		}
		out.Partly = true
		return out, nil
	}
	files, err := git.Files(look, id, "", "")
	if err != nil {
		return over(err)
	}
	for _, f := range files {
		if look.Err() != nil {
			return over(ctx.Err())
		}
		b, err := git.ReadBlob(look, id, f.New)
		if err != nil {
			return over(err)
		}
		line := 0
		for _, s := range scan.Suspects(f.Path, b) {
			if !known && s.Rule != secretscan.RuleAssigned || s.Line == line {
				continue
			}
			if line = s.Line; len(out.Places) < maxSuspects {
				out.Places = append(out.Places, Suspect{f.Path, s.Line})
			} else {
				out.More++
			}
		}
	}
	return out, nil
}

// suspects is what is told of a space that got a remote; it stops nothing.
func (l *Local) suspects(ctx context.Context, id space.SpaceID, r RemoteRequest, progress func(string)) *Suspected {
	had, has, err := l.Remotes.Get(ctx, id)
	if err != nil || r.Replace || has && had.URL == strings.TrimSpace(r.URL) {
		return nil
	}
	progress("Looking for passwords in what the space has")
	found, err := SuspectsIn(ctx, l.Git, l.Secrets, id, l.Unscreened, l.SuspectTime)
	if err != nil {
		l.Logger.Warn("look for passwords in what a space has", "space", id, "err", err)
		return nil
	}
	return &found
}
