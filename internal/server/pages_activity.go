package server

import (
	"context"
	"errors"
	"strings"

	"satchel/auth/store"
	"satchel/gitstore/remotes"
	"satchel/gitstore/reviews"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/transport"
	"satchel/internal/admin"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// addActivity gives the pages what happens in spaces.
func (s *Server) addActivity(o *web.Options) {
	s.live = web.NewLive(web.LiveOptions{})
	// Streams end with the background work, so that a server that stops does not
	// wait for pages that stay open.
	context.AfterFunc(s.ctx, s.live.Close)
	s.events.add(s.live)
	s.events.add(s.reviews)
	context.AfterFunc(s.ctx, s.reviews.Close) // with the other background work
	o.Live, o.Reviews, o.Remotes, o.NewSpace = s.live, pageReviews{s.reviews, s}, pageRemotes{s}, s.newSpace
	o.Held = pageHeld{s}
	s.openDeletions()
	o.Ownership = pageSpaces{s}
}

// add lets one more follow, before anything is committed.
func (r *relay) add(one space.Events) {
	var all []space.Events
	if f := r.followers.Load(); f != nil {
		all = append(all, *f...)
	}
	r.follow(append(all, one)...)
}

// pageReviews is what waits for people as the pages have it.
type pageReviews struct {
	*reviews.Reviews
	s *Server
}

func (p pageReviews) Keep(ctx context.Context, id space.SpaceID, by space.UserID, path space.Path, b space.BlobID, mode space.Mode) error {
	err := p.Reviews.Keep(ctx, id, by, path, b, mode)
	if err == nil {
		p.s.auditPage(ctx, by, "review.keep", id, map[string]any{"path": path, "blob": b})
	}
	return err
}

func (p pageReviews) Undo(ctx context.Context, id space.SpaceID, by space.UserID, path space.Path, b space.BlobID, mode space.Mode, m space.Meta) (space.Commit, error) {
	c, err := p.Reviews.Undo(ctx, id, by, path, b, mode, m)
	if err == nil {
		p.s.auditPage(ctx, by, "review.undo", id, map[string]any{"path": path, "blob": b, "commit": c.ID})
	}
	return c, err
}

// pageRemotes is the remotes as the pages have them.
type pageRemotes struct{ s *Server }

func (p pageRemotes) State(id space.SpaceID) string { return string(p.s.remotes.State(id)) }

func (p pageRemotes) Status(ctx context.Context, id space.SpaceID) (web.RemoteStatus, error) {
	st, err := p.s.remotes.Status(ctx, id)
	if err != nil {
		return web.RemoteStatus{}, err
	}
	out := web.RemoteStatus{
		State: string(st.State), Problem: string(st.Problem), Detail: st.Detail, Remedy: st.Remedy, Unpushed: st.Unpushed,
		LastCheck: st.LastCheck, LastSync: st.LastSync, NextTry: st.NextTry, Attempts: st.Attempts,
	}
	if r := st.Remote; r != nil {
		out.URL, out.Branch, out.Username, out.GitHub, out.Token = r.URL, r.Branch, r.Username, r.Kind == remotes.GitHub, r.Kind == remotes.Token
		if !r.Chosen {
			out.Branch = ""
		}
	}
	for _, l := range st.Locations {
		out.Refused = append(out.Refused, web.RefusedPlace{Commit: string(l.Commit), Path: l.Path, Line: l.Line, Rule: l.Rule})
	}
	for _, n := range st.Notes {
		out.Notes = append(out.Notes, web.RemoteNote{At: n.At, Text: n.Text})
	}
	return out, nil
}

func (p pageRemotes) Sync(ctx context.Context, id space.SpaceID) error {
	_, err := p.s.remotes.Sync(ctx, id, nil)
	return err
}

var errEnoughFound = errors.New("enough was found")

// Set looks for secrets first: while a space had no remote nothing screened it,
// and the first push takes all of its history along.
func (p pageRemotes) Set(ctx context.Context, by space.UserID, r web.NewRemote) ([]web.FoundSecret, error) {
	s := p.s
	url := strings.TrimSpace(r.URL)
	req := remotes.SetRequest{Space: r.Space, URL: url, Branch: r.Branch, Username: r.Username, Secret: r.Token}
	if err := s.remotes.Check(ctx, req); err != nil {
		return nil, noTrust(err)
	}
	had, has, err := s.remotes.Get(ctx, r.Space)
	if err != nil {
		return nil, err
	}
	screened := s.Config.Space.ScreenSecrets && (!has || had.URL != url)
	var found foundSecrets
	if screened {
		head, err := s.Git.Head(ctx, r.Space)
		if err != nil {
			return nil, err
		}
		left, err := p.secrets(ctx, r.Space, "", r.AllowSecrets, &found)
		if err != nil || len(left) > 0 {
			return left, err
		}
		left, err = p.secrets(ctx, r.Space, head, r.AllowSecrets, &found) // what was saved meanwhile
		if err != nil || len(left) > 0 {
			return left, err
		}
	}
	for _, f := range found {
		err := s.secrets.Allow(ctx, secretscan.Allowance{Space: r.Space, Fingerprint: f.Fingerprint, Rule: f.rule, Path: space.Path(pageHeld{s}.redacted(string(f.Path))), By: string(by)})
		if err != nil {
			return nil, err
		}
	}
	if len(found) > 0 {
		s.auditPage(ctx, by, "space.secret.allow", r.Space, map[string]any{"found": len(found)})
	}
	if err := s.remotes.Set(ctx, req); err != nil {
		return nil, noTrust(err)
	}
	s.auditPage(ctx, by, "space.remote.set", r.Space, admin.RemoteDetail(url, r.Branch))
	return nil, nil
}

// noTrust tells who may set an address that the pages do not.
func noTrust(err error) error {
	if transport.NeedsTrust(err) {
		return fault.Wrap(err, fault.Invalid, "%s Who runs this server can set such an address with the command satchel space remote set.", fault.PublicOf(err))
	}
	return err
}

// foundSecret is one that its owner was shown and said is none.
type foundSecret struct {
	web.FoundSecret
	rule string
}

type foundSecrets []foundSecret

// secrets finds what looks like a secret in the history of a space, and that is not in
// since's, each value once: what is left beside the allowed fingerprints, until there are
// more than a page lists, and, in found, what is of these.
func (p pageRemotes) secrets(ctx context.Context, id space.SpaceID, since space.CommitID, allowed []string, found *foundSecrets) (left []web.FoundSecret, err error) {
	seen, may := map[string]bool{}, map[string]bool{}
	for _, a := range allowed {
		may[a] = true
	}
	for _, f := range *found {
		seen[f.Fingerprint] = true
	}
	err = p.s.Git.WalkBlobs(ctx, id, since, func(at space.CommitID, path space.Path, content []byte) error {
		err := p.s.secrets.Screen(ctx, id, path, content, nil)
		var refusal *secretscan.Refusal
		if !errors.As(err, &refusal) {
			return err
		}
		for _, f := range refusal.Findings {
			if seen[f.Fingerprint] {
				continue
			}
			seen[f.Fingerprint] = true
			one := web.FoundSecret{Path: path, Line: f.Line, At: at, Description: f.Description, Fingerprint: f.Fingerprint}
			if may[f.Fingerprint] {
				*found = append(*found, foundSecret{one, f.Rule})
			} else if left = append(left, one); len(left) > web.MaxFoundSecrets {
				return errEnoughFound
			}
		}
		return nil
	})
	if errors.Is(err, errEnoughFound) {
		err = nil
	}
	return left, err
}

func (p pageRemotes) Remove(ctx context.Context, by space.UserID, id space.SpaceID) error {
	if err := p.s.remotes.Remove(ctx, id); err != nil {
		return err
	}
	p.s.auditPage(ctx, by, "space.remote.remove", id, nil)
	return nil
}

// auditPage notes what somebody did on a page, once it is done.
func (s *Server) auditPage(ctx context.Context, by space.UserID, action string, id space.SpaceID, detail map[string]any) {
	if err := s.Accounts.Record(context.WithoutCancel(ctx), store.Actor{User: by, Via: "web"}, action, string(id), detail); err != nil {
		s.Log.Error("write the audit log", "action", action, "err", err)
	}
}

// newSpace makes a further space of a person's; the repository first, as for a new
// person.
func (s *Server) newSpace(ctx context.Context, by store.Actor, owner space.UserID, name string) (store.Space, error) {
	made, err := s.Service.CreateSpace(ctx, service.Person(store.User{ID: owner}), service.CreateSpaceInput{Name: name})
	return store.Space{ID: made.ID, Name: made.Name, Owner: owner}, err
}
