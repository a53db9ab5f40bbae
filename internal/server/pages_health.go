package server

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"satchel/auth"
	"satchel/gitstore/remotes"
	"satchel/gitstore/transport"
	"satchel/internal/bytesize"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// health checks a running server. It caches the results of slow checks.
type health struct {
	s       *Server
	started time.Time
	now     func() time.Time

	mu      sync.Mutex
	bash    kept[error]
	sizes   kept[map[space.SpaceID]int64]
	behind  kept[indexState]
	commits map[space.SpaceID]counted
	looking sync.Mutex // at sandboxes, which starts one
}

// kept is a cached result and its time.
type kept[T any] struct {
	at    time.Time
	value T
}

// How long results are cached.
const (
	keepBash  = 5 * time.Minute
	keepSizes = time.Minute
	keepIndex = 10 * time.Second
)

// accessOf returns the configuration's rules of access.
func accessOf(cfg *config.Config) service.Access {
	a := cfg.Auth
	acc := service.Access{Issuer: a.Issuer.URL, Registration: a.Registration, Documents: a.ClientDocuments, File: cfg.File}
	if a.Mail.URL != "" {
		acc.MailFrom = a.Mail.From
	}
	return acc
}

// Report runs the quick checks.
func (h *health) Report(ctx context.Context) (service.Health, error) {
	r := service.Health{Started: h.started}
	for _, look := range []func(context.Context) service.HealthCheck{
		h.database, h.sandboxes, h.search, h.sources, h.remotes, h.certificate, h.disk, h.git, h.github,
	} {
		r.Checks = append(r.Checks, look(ctx))
	}
	st, err := h.s.Accounts.Stats(ctx)
	if err != nil {
		return r, err
	}
	for _, n := range h.stored(ctx) {
		r.Stored += n
	}
	up := 0
	if h.s.bash != nil {
		up = h.s.bash.pool.Status().Sandboxes
	}
	r.Totals = []service.HealthTotal{
		{Name: "People", Value: fmt.Sprint(st.Users)}, {Name: "Admins", Value: fmt.Sprint(st.Admins)},
		{Name: "Spaces", Value: fmt.Sprint(st.Spaces)}, {Name: "Sources", Value: fmt.Sprint(len(h.s.sources.All()))},
		{Name: "API keys", Value: fmt.Sprint(st.Keys)}, {Name: "Sandboxes", Value: fmt.Sprint(up)},
	}
	return r, nil
}

func good(name, detail string, args ...any) service.HealthCheck {
	return service.HealthCheck{Name: name, State: service.HealthGood, Detail: fmt.Sprintf(detail, args...)}
}

func (h *health) database(ctx context.Context) service.HealthCheck {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	began := time.Now()
	if err := h.s.DB.Ping(ctx); err != nil {
		return service.HealthCheck{Name: "Database", State: service.HealthBad, Detail: fault.PublicOf(err), Remedy: "Start the database, or correct database.url. The log says more."}
	}
	return good("Database", "%s answers in %v.", h.s.DB.Kind(), time.Since(began).Round(100*time.Microsecond))
}

// sandboxes reports whether bash can run, and how full the pool is.
func (h *health) sandboxes(ctx context.Context) service.HealthCheck {
	const name = "Sandboxes"
	if h.s.bash == nil {
		return service.HealthCheck{Name: name, State: service.HealthOff, Detail: "Bash is switched off (sandbox.runtime: none).", Remedy: "Searching, reading and everything else work without."}
	}
	if err := h.bashWorks(ctx); err != nil {
		return service.HealthCheck{Name: name, State: service.HealthBad, Detail: fault.PublicOf(err), Remedy: "Until then everything but bash works; satchel doctor on the server's machine says more."}
	}
	p, of := h.s.bash.pool.Status(), h.s.Config.Sandbox.Max
	c := good(name, "%s: %d of %d are up, %d busy, with %s.", h.s.runtime.Name(), p.Sandboxes, of, p.Busy, bytesize.Text(p.Memory))
	switch {
	case p.Queued > 0:
		c.State, c.Remedy = service.HealthNote, fmt.Sprintf("%d wait for room. Raise sandbox.max or sandbox.total_memory where the machine has more.", p.Queued)
	case p.OutOfMemory > 0:
		c.Detail += fmt.Sprintf(" %d ran out of memory since the start.", p.OutOfMemory)
	}
	return c
}

// bashWorks asks the runtime from time to time, which may start a sandbox.
func (h *health) bashWorks(ctx context.Context) error {
	if h.s.bash.pool.Status().Sandboxes > 0 {
		return nil // one is up
	}
	h.looking.Lock()
	defer h.looking.Unlock()
	h.mu.Lock()
	last := h.bash
	h.mu.Unlock()
	if !last.at.IsZero() && h.now().Sub(last.at) < keepBash {
		return last.value
	}
	err := h.s.bash.pool.Check(ctx)
	if ctx.Err() != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bash = kept[error]{h.now(), err}
	return err
}

// indexState is the progress of the indexes of all spaces.
type indexState struct{ spaces, behind, failed int }

// maxIndexes limits the indexes that one check opens.
const maxIndexes = 200

// behindNote is how long an index may be behind before it needs attention.
const behindNote = time.Minute

func (h *health) search(ctx context.Context) service.HealthCheck {
	h.mu.Lock()
	last := h.behind
	h.mu.Unlock()
	st := last.value
	if last.at.IsZero() || h.now().Sub(last.at) > keepIndex {
		ids, err := h.s.Git.Spaces()
		if err != nil {
			return service.HealthCheck{Name: "Search", State: service.HealthBad, Detail: "The spaces cannot be listed.", Remedy: "The log says more."}
		}
		ids = slices.DeleteFunc(ids, h.s.syncs.Owns) // the index follows their sources
		st = indexState{spaces: len(ids)}
		for _, id := range ids[:min(len(ids), maxIndexes)] {
			x, err := h.s.index.Status(ctx, id)
			switch {
			case ctx.Err() != nil:
			case err != nil || x.Err != nil:
				st.failed++
			case x.Behind > behindNote:
				st.behind++
			}
		}
		h.mu.Lock()
		h.behind = kept[indexState]{h.now(), st}
		h.mu.Unlock()
	}
	switch {
	case st.failed > 0:
		return service.HealthCheck{Name: "Search", State: service.HealthBad, Detail: fmt.Sprintf("The index of %s could not be brought up to date.", spacesText(st.failed)), Remedy: "The log says why; satchel reindex makes an index anew."}
	case st.behind > 0:
		return service.HealthCheck{Name: "Search", State: service.HealthNote, Detail: fmt.Sprintf("The index of %s is over a minute behind.", spacesText(st.behind)), Remedy: "Large imports take a while. If it stays so, satchel reindex makes an index anew."}
	}
	return good("Search", "The indexes of %s are up to date.", spacesText(st.spaces))
}

func spacesText(n int) string {
	if n == 1 {
		return "1 space"
	}
	return fmt.Sprintf("%d spaces", n)
}

func (h *health) remotes(context.Context) service.HealthCheck {
	st := h.s.Core.remotes.Stats()
	if st.Remotes == 0 {
		return service.HealthCheck{Name: "Remotes", State: service.HealthOff, Detail: "No space has one.", Remedy: "Spaces are kept on this machine alone: back it up."}
	}
	c := good("Remotes", "%s: %d wait, %d run.", spacesText(st.Remotes), st.Queued, st.Running)
	var failing []string
	for _, p := range slices.Sorted(maps.Keys(st.Failed)) {
		if n := st.Failed[p]; n > 0 {
			failing = append(failing, fmt.Sprintf("%d (%s)", n, failureText(p)))
		}
	}
	if len(failing) > 0 {
		c.State = service.HealthBad
		c.Detail += " Failing: " + strings.Join(failing, ", ") + "."
		c.Remedy = "Owners see on their space's pages what to do; satchel space status shows it here. It is tried again by itself."
	}
	if st.OldestUnpushed > time.Hour {
		c.Detail += fmt.Sprintf(" The oldest commit has waited %s.", st.OldestUnpushed.Round(time.Minute))
		if c.State == service.HealthGood {
			c.State = service.HealthNote
		}
	}
	return c
}

// certificateNote is the remaining lifetime at which a certificate needs attention. Renewal
// normally happens long before.
const certificateNote = 14 * 24 * time.Hour

func (h *health) certificate(context.Context) service.HealthCheck {
	const name = "Certificate"
	if h.s.secure == nil {
		c := service.HealthCheck{Name: name, State: service.HealthOff, Detail: "None of this server's own (server.domain)."}
		switch {
		case h.s.Exposed():
			c.State, c.Detail = service.HealthBad, "Other machines reach this server over plain http."
			c.Remedy = "Set server.domain for a certificate of its own, or server.public_url where a proxy has one."
		case strings.HasPrefix(h.s.issuer, "https://"):
			c.Detail += " A proxy in front has one."
		}
		return c
	}
	st := h.s.secure.manager.Status()
	switch left := st.NotAfter.Sub(h.now()); {
	case st.NotAfter.IsZero():
		return service.HealthCheck{Name: name, State: service.HealthBad, Detail: fmt.Sprintf("There is none for %s yet. %s", st.Domain, st.LastError), Remedy: "The domain must lead here, with ports 443 or 80 open."}
	case left < certificateNote:
		return service.HealthCheck{Name: name, State: service.HealthBad, Detail: fmt.Sprintf("That of %s ends on %s. %s", st.Domain, st.NotAfter.UTC().Format(time.DateOnly), st.LastError), Remedy: "It is asked for again by itself; see to it that the domain leads here."}
	}
	return good(name, "That of %s is good until %s.", st.Domain, st.NotAfter.UTC().Format(time.DateOnly))
}

// leastFree is the free space below which an admin should act. Commits fail when the disk
// is full.
const leastFree = 2 << 30

func (h *health) disk(context.Context) service.HealthCheck {
	free, err := freeBytes(h.s.Config.DataDir)
	if err != nil {
		return service.HealthCheck{Name: "Disk", State: service.HealthNote, Detail: "It cannot be told how much is free."}
	}
	c := good("Disk", "%s are free where the data is.", bytesize.Text(int64(min(free, 1<<62))))
	if free < leastFree {
		c.State, c.Remedy = service.HealthBad, "Make room: commits fail when the disk is full."
	}
	return c
}

func (h *health) git(context.Context) service.HealthCheck {
	if _, err := exec.LookPath("git"); err != nil {
		return service.HealthCheck{Name: "git", State: service.HealthBad, Detail: "It is not installed.", Remedy: "Satchel imports, packs and merges spaces with it: apt-get install git"}
	}
	return good("git", "It is installed.")
}

func (h *health) github(ctx context.Context) service.HealthCheck {
	const name = "GitHub App"
	a, ok, err := h.s.Accounts.GitHubApp(ctx)
	switch {
	case err != nil:
		return service.HealthCheck{Name: name, State: service.HealthBad, Detail: fault.PublicOf(err), Remedy: "The log says more."}
	case !ok:
		return service.HealthCheck{Name: name, State: service.HealthOff, Detail: "There is none: people connect repositories by a token.", Remedy: "Make one under GitHub, above."}
	}
	links, err := h.s.Accounts.RepositoryLinks(ctx)
	if err != nil {
		return service.HealthCheck{Name: name, State: service.HealthBad, Detail: fault.PublicOf(err), Remedy: "The log says more."}
	}
	c := good(name, "%s.", a.Name)
	for _, state := range []auth.LinkState{auth.LinkSuspended, auth.LinkRemoved, auth.LinkLost} {
		n := 0
		for _, l := range links {
			if l.State == state {
				n++
			}
		}
		if n == 0 {
			continue
		}
		// Do not reveal to an admin whose connections they are.
		what, way := auth.RepositoryLink{State: state}.Trouble()
		c.State = service.HealthNote
		c.Detail += fmt.Sprintf(" %s: %s", spacesText(n), what)
		c.Remedy = strings.TrimSpace(c.Remedy + " " + way)
	}
	return c
}

// failureText describes a problem of remotes.
func failureText(p remotes.Problem) string {
	switch p {
	case remotes.NoAccess:
		return "no access by the GitHub App, see below"
	case remotes.NoToken:
		return "a token that cannot be read"
	case remotes.Missing:
		return "a space that is not on this disk"
	case remotes.Internal, transport.Unknown:
		return "see the log"
	}
	return strings.ReplaceAll(string(p), "_", " ")
}

// stored returns the size of each space's packs on disk, in bytes.
func (h *health) stored(ctx context.Context) map[space.SpaceID]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.sizes.at.IsZero() && h.now().Sub(h.sizes.at) < keepSizes {
		return h.sizes.value
	}
	sizes := map[space.SpaceID]int64{}
	ids, err := h.s.Git.Spaces()
	if err != nil {
		return sizes
	}
	for _, id := range ids {
		if ctx.Err() != nil {
			return sizes
		}
		packs, _ := os.ReadDir(filepath.Join(h.s.Config.DataDir, "spaces", string(id)+".git", "objects", "pack")) // none: 0 bytes
		for _, p := range packs {
			if info, err := p.Info(); err == nil {
				sizes[id] += info.Size()
			}
		}
	}
	h.sizes = kept[map[space.SpaceID]int64]{h.now(), sizes}
	return sizes
}

// counted is the count of a space's recent commits at a head.
type counted struct {
	kept[int]
	head space.CommitID
}

// Limits of the counted history.
const (
	commitDays = 30
	maxCounted = 1000
)

// committed counts a space's recent commits. It counts again after a new commit, or after
// some hours.
func (h *health) committed(ctx context.Context, id space.SpaceID) int {
	head, err := h.s.Git.Head(ctx, id)
	if err != nil {
		return 0
	}
	h.mu.Lock()
	c, ok := h.commits[id]
	h.mu.Unlock()
	if ok && c.head == head && h.now().Sub(c.at) < 6*time.Hour {
		return c.value
	}
	list, err := h.s.Git.Log(ctx, id, space.LogQuery{Since: h.now().AddDate(0, 0, -commitDays), Limit: maxCounted})
	if err != nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.commits == nil || len(h.commits) > 10_000 {
		h.commits = map[space.SpaceID]counted{}
	}
	h.commits[id] = counted{kept[int]{h.now(), len(list)}, head}
	return len(list)
}

// Usage reports what people use.
func (h *health) Usage(ctx context.Context, people []space.UserID) ([]service.Usage, error) {
	all, err := h.s.Accounts.Spaces(ctx)
	if err != nil {
		return nil, err
	}
	owned := map[space.UserID][]space.SpaceID{}
	for _, sp := range all {
		owned[sp.Owner] = append(owned[sp.Owner], sp.ID)
	}
	sizes := h.stored(ctx)
	var up map[space.UserID]int
	if h.s.bash != nil {
		up = h.s.bash.pool.ByUser()
	}
	out := make([]service.Usage, 0, len(people))
	for _, p := range people {
		u := service.Usage{User: p, Spaces: len(owned[p]), Sandboxes: up[p]}
		for _, id := range owned[p] {
			u.Bytes += sizes[id]
			n := h.committed(ctx, id)
			u.Commits += n
			u.More = u.More || n == maxCounted
		}
		grants, err := h.s.Accounts.Grants(ctx, p)
		if err != nil {
			return nil, err
		}
		u.Grants = len(grants)
		for _, g := range grants {
			u.Seen = later(u.Seen, g.LastUsed)
		}
		sessions, err := h.s.Accounts.Sessions(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, ss := range sessions {
			u.Seen = later(u.Seen, ss.Seen)
		}
		out = append(out, u)
	}
	return out, nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
