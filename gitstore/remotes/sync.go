package remotes

import (
	"context"
	"errors"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// defaultBranch is the branch that an empty remote gets if it names no default.
const defaultBranch = "main"

// syncing is one sync of one space.
type syncing struct {
	m      *Manager
	e      *entry // locked by m.mu
	remote space.Remote
	sealed []byte
	want   want
	before outcome
	tries  int

	cred    space.Credential
	has     bool   // cred was found
	renewed bool   // cred was requested again, because it was refused
	checked bool   // the remote answered
	again   string // the notice of a branch that must be pushed again
	moved   bool   // something was fetched, merged or pushed
}

// result is the outcome of a sync.
type result struct {
	// synced is the head if the remote has it too; otherwise it is empty.
	synced space.CommitID
	// again means that the space has changed meanwhile.
	again   bool
	quiet   bool // there was nothing to do, and the remote was not contacted
	checked bool
	trouble *trouble      // nil if all went well
	wait    time.Duration // the time until the next try, after a trouble
}

// run performs one sync. It checks the remote, fetches, merges and pushes, and repeats these
// steps if the remote moved meanwhile.
func (s *syncing) run(ctx context.Context) result {
	synced, err := s.steps(ctx)
	r := result{checked: s.checked}
	switch {
	case errors.Is(err, errNothingToDo):
		r.synced, r.quiet = synced, true
	case err != nil:
		r.trouble = explain(s.remote, err)
	default:
		s.replaced()
		r.synced = synced
		head, err := s.m.o.Git.Head(ctx, s.remote.Space)
		r.again = err != nil || head != synced
	}
	return r
}

var (
	errNothingToDo = errors.New("the remote has the head")
	errRestless    = errors.New("the remote moved before every push")
)

func (s *syncing) steps(ctx context.Context) (space.CommitID, error) {
	git, id := s.m.o.Git, s.remote.Space
	head, err := git.Head(ctx, id)
	if err != nil {
		return "", err
	}
	tracked, known, err := s.tracked(ctx)
	if err != nil {
		return "", err
	}
	if known && tracked == head {
		if s.want&wantCheck == 0 && s.before.problem == "" {
			return head, errNothingToDo
		}
	} else if err := s.behind(ctx); err != nil {
		return "", err
	}
	for range s.m.o.Rounds {
		synced, err := s.round(ctx)
		if p := problemOf(err); p != transport.Stale && p != transport.NoBranch {
			return synced, err
		}
		s.m.o.Logger.DebugContext(ctx, "remote moved before the push", "space", id)
	}
	return "", errRestless
}

// round checks the remote once, and fetches, merges and pushes if necessary. It returns the head
// that both sides then have. A transport.Stale means that the remote moved meanwhile.
func (s *syncing) round(ctx context.Context) (space.CommitID, error) {
	git, id := s.m.o.Git, s.remote.Space
	refs, err := s.list(ctx)
	if err != nil {
		return "", err
	}
	if s.remote.Branch == "" {
		if err := s.setBranch(ctx, chooseBranch(refs)); err != nil {
			return "", err
		}
	}
	tracked, known, err := s.tracked(ctx)
	if err != nil {
		return "", err
	}
	tip, there := refs.Heads[s.remote.Branch]
	if !there && known {
		if tip, there, err = s.gone(ctx, refs, tracked); err != nil {
			return "", err
		}
	} else if there && !(known && tip == tracked) {
		if tip, err = s.fetch(ctx, refs, s.remote.Branch); err != nil {
			return "", err
		}
		if known {
			if err := s.compare(ctx, tip, tracked); err != nil {
				return "", err
			}
		}
	}
	head, err := git.Head(ctx, id)
	if err != nil {
		return "", err
	}
	if there && tip != head && s.replaces() {
		return tip, s.follow(ctx, tip)
	}
	if there && tip != head {
		// Merge even if the tip is known, because the last sync may have ended before this step.
		if err := s.integrate(ctx, tip); err != nil {
			return "", err
		}
		if head, err = git.Head(ctx, id); err != nil {
			return "", err
		}
	}
	if there && tip == head {
		return head, nil
	}
	return s.push(ctx)
}

// chooseBranch returns the branch to follow if nobody named one: the remote's default
// branch. After a push to a new repository whose settings name another default, only
// other branches may have commits. chooseBranch then returns the branch with a usual default
// name, or the only branch.
func chooseBranch(refs transport.Refs) string {
	name := refs.Default
	if transport.CheckBranch(name) != nil { // the remote sent no name, or an invalid one
		name = defaultBranch
	}
	if _, ok := refs.Heads[name]; ok || len(refs.Heads) == 0 {
		return name
	}
	for _, usual := range []string{defaultBranch, "master"} {
		if _, ok := refs.Heads[usual]; ok {
			return usual
		}
	}
	if len(refs.Heads) == 1 {
		for only := range refs.Heads {
			return only
		}
	}
	return name
}

func (s *syncing) tracked(ctx context.Context) (space.CommitID, bool, error) {
	if s.remote.Branch == "" {
		return "", false, nil
	}
	return s.m.o.Git.Tracked(ctx, s.remote.Space, s.remote.Branch)
}

// oldestAmong limits the unpushed commits among which behind looks for the oldest.
const oldestAmong = 1000

// behind records since when the remote has lacked commits, if this is unknown, for
// example after a start. It records the time of the oldest unpushed commit.
func (s *syncing) behind(ctx context.Context) error {
	s.m.mu.Lock()
	known := !s.e.behindSince.IsZero()
	s.m.mu.Unlock()
	if known {
		return nil
	}
	since := time.Now()
	branch := s.remote.Branch
	if branch == "" {
		branch = defaultBranch
	}
	_, newest, err := s.m.o.Git.Unpushed(ctx, s.remote.Space, branch, oldestAmong)
	if err != nil {
		return err
	}
	if n := len(newest); n > 0 && newest[n-1].Time.Before(since) {
		since = newest[n-1].Time
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.e.behindSince.IsZero() {
		s.e.behindSince = since
	}
	return nil
}

func (s *syncing) list(ctx context.Context) (refs transport.Refs, err error) {
	s.report("Asking the remote what it has.")
	err = s.step(ctx, "check", func(e transport.Endpoint) error {
		refs, err = s.m.o.Transport.List(ctx, e)
		return err
	})
	if err == nil {
		s.checked = true
	}
	return refs, err
}

// fetch fetches a branch of the remote.
func (s *syncing) fetch(ctx context.Context, refs transport.Refs, branch string) (space.CommitID, error) {
	if refs.Shallow {
		return "", &transport.Error{Problem: transport.Shallow, Op: "fetch", Host: hostOf(s.remote.URL)}
	}
	s.busy()
	var got gitstore.Fetched
	err := s.step(ctx, "fetch", func(e transport.Endpoint) error {
		var err error
		got, err = s.m.o.Git.Fetch(ctx, s.remote.Space, e, branch, s.report)
		return err
	})
	return got.Tip, err
}

// compare checks whether the remote's history was rewritten, that is, whether its branch
// lost commits. People are notified when both sides are merged.
func (s *syncing) compare(ctx context.Context, tip, had space.CommitID) error {
	contains, err := s.m.o.Git.Contains(ctx, s.remote.Space, tip, had)
	if err != nil || contains {
		return err
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.e.rewritten = true
	return nil
}

// integrate merges the fetched commits into the space's head.
func (s *syncing) integrate(ctx context.Context, tip space.CommitID) error {
	s.busy()
	start := time.Now()
	in, err := s.m.o.Git.Integrate(ctx, s.remote.Space, tip, s.m.o.Meta(s.remote))
	if ctx.Err() == nil && in.How != gitstore.UpToDate && in.How != gitstore.Ahead {
		s.m.o.Metrics.Step("merge", resultOf(err), time.Since(start))
	}
	if err != nil {
		return err
	}
	s.m.mu.Lock()
	rewritten := s.e.rewritten
	s.e.rewritten = false
	s.m.mu.Unlock()
	for _, text := range mergeNotices(s.remote, in, rewritten) {
		s.note(ctx, text)
	}
	return nil
}

// replaces reports whether the remote's commit must replace head.
func (s *syncing) replaces() bool {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return s.e.replace
}

// replaced records that SetRequest.Replace is done: from now on, changes at the remote are
// merged.
func (s *syncing) replaced() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.e.replace = false
}

// follow makes a commit of the remote the space's head.
func (s *syncing) follow(ctx context.Context, tip space.CommitID) error {
	s.busy()
	left, err := s.m.o.Git.Head(ctx, s.remote.Space)
	if err != nil {
		return err
	}
	if _, err := s.m.o.Git.ResetToRemote(ctx, s.remote.Space, tip, s.m.o.Meta(s.remote)); err != nil {
		return err
	}
	s.m.mu.Lock()
	s.e.rewritten = false
	s.m.mu.Unlock()
	s.note(ctx, noticeReplaced(s.remote, left))
	return nil
}

func (s *syncing) push(ctx context.Context) (pushed space.CommitID, err error) {
	s.busy()
	err = s.step(ctx, "push", func(e transport.Endpoint) error {
		pushed, err = s.m.o.Git.Push(ctx, s.remote.Space, e, s.remote.Branch, s.report)
		return err
	})
	if err == nil && s.again != "" {
		s.note(ctx, s.again)
		s.again = ""
	}
	return pushed, err
}

// gone handles a branch that the remote no longer has: it follows a renamed default branch,
// and lets the sync push any other branch again.
func (s *syncing) gone(ctx context.Context, refs transport.Refs, tracked space.CommitID) (tip space.CommitID, there bool, err error) {
	next := refs.Default
	if _, ok := refs.Heads[next]; ok && next != s.remote.Branch && !s.remote.Chosen {
		// Fetch even if the tip is known, because the fetch adds a tracking ref for the new name.
		if tip, err = s.fetch(ctx, refs, next); err != nil {
			return "", false, err
		}
		contains, err := s.m.o.Git.Contains(ctx, s.remote.Space, tip, tracked)
		if err != nil {
			return "", false, err
		}
		if contains {
			text := noticeRenamed(s.remote, next)
			if err := s.setBranch(ctx, next); err != nil {
				return "", false, err
			}
			s.note(ctx, text)
			return tip, true, nil
		}
	}
	s.again = noticeDeleted(s.remote)
	if len(refs.Heads) == 0 {
		s.again = noticeEmptied(s.remote)
	}
	return "", false, nil
}

// step runs and measures one transfer with a valid credential. If the remote refuses a
// GitHub App's token, it repeats the transfer with a new token. If the App gets no new token, the
// App's error says why.
func (s *syncing) step(ctx context.Context, name string, do func(transport.Endpoint) error) error {
	start := time.Now()
	err := s.withCredential(ctx, do)
	if s.refused(problemOf(err)) && !s.renewed {
		s.renewed, s.has = true, false
		err = s.withCredential(ctx, do)
	}
	if ctx.Err() == nil {
		s.m.o.Metrics.Step(name, resultOf(err), time.Since(start))
	}
	return err
}

// refused reports whether p means that the remote refused a GitHub App's token, or has moved. It
// then notifies the App, so that the next token is a new one.
func (s *syncing) refused(p Problem) bool {
	switch p {
	case transport.Auth, transport.Forbidden, transport.Gone, transport.Moved:
	default:
		return false
	}
	if s.remote.Kind != space.KindGitHub {
		return false
	}
	if c, ok := s.m.o.Credentials.(interface{ Refused(space.Repository) }); ok {
		c.Refused(space.Repository{Space: s.remote.Space, URL: s.remote.URL})
	}
	return true
}

func (s *syncing) withCredential(ctx context.Context, do func(transport.Endpoint) error) error {
	if err := s.credential(ctx); err != nil {
		return err
	}
	return do(transport.Endpoint{
		URL: s.remote.URL, Credential: s.cred, Trusted: s.remote.Trusted, CAFile: s.m.o.CAFile, SSH: s.ssh(),
	})
}

// report passes progress to everyone who waits for this sync or the next.
func (s *syncing) report(line string) {
	s.m.mu.Lock()
	to := append(append([]*waiter(nil), s.e.current...), s.e.waiters...)
	s.m.mu.Unlock()
	for _, w := range to {
		w.report(line)
	}
}

// busy records that the sync does more than check the remote.
func (s *syncing) busy() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.e.transit, s.moved = true, true
}

// setBranch stores which branch of the remote the space follows.
func (s *syncing) setBranch(ctx context.Context, name string) error {
	if err := s.m.storeBranch(ctx, s.remote.Space, name); err != nil {
		return err
	}
	s.remote.Branch = name
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.e.remote.Branch = name
	return nil
}
